package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
	"github.com/gpu-summary/gpu-summary-controller/lab/progress"
)

// Metrics of the scenario quiet.
const (
	requestsPerHour = "requests_per_hour"
	bytesPerHour    = "wire_bytes_per_hour"
	writesPerHour   = "configmap_writes_per_hour"
	cpuPerHour      = "cpu_seconds_per_hour"
)

// quiet lets nothing happen for a while and counts what everybody does all the same. All do so at
// once, each with a server of its own, and once: there is nothing random in it but when a
// watch is begun anew, every five to ten minutes.
func quiet(ctx context.Context, r *runner, name string) error {
	size, duration := r.Sizes[0], r.QuietFor
	if r.Quick {
		duration = min(duration, 10*time.Second)
	}
	var pairs []*pair
	defer func() {
		for _, p := range pairs {
			p.stop()
		}
	}()
	var before []server.State
	var cpu []float64
	load := loadAverage()
	for _, w := range []who{controller, drain, textbook, poll, stateMetrics} {
		if !r.takesPart(w) {
			continue
		}
		if why := fits(w, size.Pods); why != "" {
			r.report.skip(key{Scenario: name, Size: size.String(), Who: w}, why)
			continue
		}
		p, err := r.settled(ctx, w, size.cluster())
		if err != nil {
			return err
		}
		pairs = append(pairs, p)
	}
	for _, p := range pairs {
		state, err := p.server.state(ctx, 0)
		if err != nil {
			return err
		}
		used, err := p.cpu()
		if err != nil {
			return err
		}
		before, cpu = append(before, state), append(cpu, used)
	}
	if err := r.letPass(ctx, name, duration); err != nil {
		return err
	}
	for i, p := range pairs {
		m, err := p.whatHappened(ctx, before[i], cpu[i], duration)
		if err != nil {
			return err
		}
		r.report.add(key{Scenario: name, Size: size.String(), Case: fmt.Sprintf("measured for %v", duration), Who: p.who}, load, m)
	}
	return nil
}

func (r *runner) letPass(ctx context.Context, what string, d time.Duration) error {
	const steps = 20
	r.bar = progress.New(r.Progress, steps, what+" for "+d.String())
	defer r.bar.Done()
	tick := time.NewTicker(d / steps)
	defer tick.Stop()
	for range steps {
		select {
		case <-tick.C:
			r.bar.Add(1)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// whatHappened is what a contestant has done since, for an hour.
func (p *pair) whatHappened(ctx context.Context, before server.State, cpu float64, d time.Duration) (metrics, error) {
	now, err := p.server.state(ctx, len(before.Writes))
	if err != nil {
		return nil, err
	}
	used, err := p.cpu()
	if err != nil {
		return nil, err
	}
	var requests int64
	for verb, c := range now.Counts {
		requests += c.Requests - before.Counts[verb].Requests
	}
	hour := float64(time.Hour) / float64(d)
	return metrics{
		requestsPerHour: float64(requests) * hour,
		bytesPerHour:    float64(now.WireIn+now.WireOut-before.WireIn-before.WireOut) * hour,
		writesPerHour:   float64(len(now.Writes)) * hour,
		cpuPerHour:      (used - cpu) * hour,
	}, nil
}
