package bench

import (
	"context"
	"math"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
)

// coldTimeout bounds a cold start; a million pods on a busy machine take a while.
const (
	coldTimeout  = 10 * time.Minute
	quietTimeout = 2 * time.Minute
)

// Metrics of a cold start.
const (
	wallSeconds     = "wall_seconds"
	cpuSeconds      = "cpu_seconds"       // until ready
	cpuQuietSeconds = "cpu_quiet_seconds" // until at rest
	peakBytes       = "peak_rss_bytes"
	heapBytes       = "live_heap_bytes"
	serverSeconds   = "server_cpu_seconds"
	wireBytes       = "wire_bytes"
)

// coldStart measures everybody from nothing to a right summary.
func coldStart(ctx context.Context, r *runner, name string) error {
	for _, size := range r.Sizes {
		var steps []step
		for _, w := range []who{controller, drain, textbook, poll, stateMetrics} {
			k := key{Scenario: name, Size: size.String(), Who: w, pods: size.Pods}
			steps = append(steps, step{k, func(ctx context.Context) (metrics, error) {
				return r.cold(ctx, w, size.cluster(), r.mode())
			}})
		}
		if err := r.take(ctx, name+" at "+size.String(), steps); err != nil {
			return err
		}
	}
	return nil
}

// cold starts a server and a contestant and measures until the contestant is at rest.
func (r *runner) cold(ctx context.Context, w who, size server.Size, m mode) (metrics, error) {
	t, err := r.serve(ctx, size, m)
	if err != nil {
		return nil, err
	}
	defer t.stop()
	before, err := t.cpu()
	if err != nil {
		return nil, err
	}
	var flags []string
	if w == controller && m.gzip { // which it does not ask for by itself
		flags = []string{"--kube-api-compression"}
	}
	e, err := r.enter(ctx, w, t, flags...)
	if err != nil {
		return nil, err
	}
	defer e.stop()
	ready, err := e.ready(ctx, coldTimeout)
	if err != nil {
		return nil, err
	}
	out := metrics{wallSeconds: ready.Sub(e.started).Seconds()}
	if out[cpuSeconds], err = e.cpu(); err != nil {
		return nil, err
	}
	if err := e.rest(ctx, out); err != nil {
		return nil, err
	}
	after, err := t.cpu()
	if err != nil {
		return nil, err
	}
	state, err := t.state(ctx, 0)
	out[serverSeconds], out[wireBytes] = after-before, float64(state.WireOut)
	return out, err
}

// rest adds what is measured when the contestant is at rest.
func (e *entry) rest(ctx context.Context, out metrics) (err error) {
	out[cpuQuietSeconds] = math.NaN()
	if e.who != poll { // it never rests
		if out[cpuQuietSeconds], err = e.quiet(ctx, quietTimeout); err != nil {
			return err
		}
	}
	// Before a garbage collection is caused: that costs memory as well.
	if out[peakBytes], err = e.memory("VmHWM"); err != nil {
		return err
	}
	out[heapBytes], err = e.heap(ctx)
	return err
}
