package bench

import (
	"context"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
)

// Metrics of changes.
const (
	cpuPerEvent   = "cpu_seconds_per_event"
	cpuPerPublish = "cpu_seconds_per_publish"
	writesDuring  = "configmap_writes"
	peakAfter     = "peak_rss_after_bytes"
)

// irrelevant measures what events cost that change no number: heartbeats of nodes, statuses of
// pods without GPUs, their creation and their deletion.
func irrelevant(ctx context.Context, r *runner, name string) error {
	size := r.Sizes[0]
	events := pick(r, 50_000, 5_000)
	var steps []step
	for _, w := range []who{controller, drain, textbook, stateMetrics} {
		steps = append(steps, step{
			key{Scenario: name, Size: size.String(), Who: w, pods: size.Pods},
			func(ctx context.Context) (metrics, error) {
				p, err := r.settled(ctx, w, size.cluster())
				if err != nil {
					return nil, err
				}
				defer p.stop()
				c, err := p.burst(ctx, pick(r, 5*time.Second, time.Second), server.Churn{Count: events, PerSecond: 5_000})
				if err != nil {
					return nil, err
				}
				peak, err := p.memory("VmHWM")
				return metrics{cpuPerEvent: c.cpu / float64(events), writesDuring: float64(len(c.writes)), peakAfter: peak}, err
			},
		})
	}
	return r.take(ctx, name+" at "+size.String(), steps)
}

// gpu measures what an event of a GPU pod costs, and what a publish does, as the cluster grows. The first
// is measured with a settle time so long that no publish falls into it. The sizes are taken in turns: they
// are compared with each other, and a machine has its better and its worse ten minutes.
func gpu(ctx context.Context, r *runner, name string) error {
	var steps []step
	for _, size := range r.Sizes {
		for _, w := range []who{controller, drain, textbook} {
			steps = append(steps, step{
				key{Scenario: name, Size: size.String(), Who: w, pods: size.Pods},
				func(ctx context.Context) (metrics, error) {
					out := metrics{}
					if w != textbook { // its limit on requests would hide what it does
						if err := r.eventCost(ctx, w, size, out); err != nil {
							return nil, err
						}
					}
					if w != drain {
						if err := r.publishCost(ctx, w, size, out); err != nil {
							return nil, err
						}
					}
					return out, nil
				},
			})
		}
	}
	return r.take(ctx, name, steps)
}

func (r *runner) eventCost(ctx context.Context, w who, size Size, out metrics) error {
	var flags []string
	if w == controller {
		flags = []string{"--settle", "1h"}
	}
	p, err := r.settled(ctx, w, size.cluster(), flags...)
	if err != nil {
		return err
	}
	defer p.stop()
	events := pick(r, 40_000, 5_000)
	c, err := p.burst(ctx, pick(r, 5*time.Second, time.Second), server.Churn{Count: events, PerSecond: 5_000, GPUEvery: 1, Finish: true})
	out[cpuPerEvent] = c.cpu / float64(events)
	return err
}

// settle is the controller's own default for how long it rests after a write; apart is
// longer, so that each change is one after quiet.
const (
	settle = time.Second
	apart  = settle + 300*time.Millisecond
)

func (r *runner) publishCost(ctx context.Context, w who, size Size, out metrics) error {
	p, err := r.settled(ctx, w, size.cluster())
	if err != nil {
		return err
	}
	defer p.stop()
	events := pick(r, 15, 3)
	c, err := p.burst(ctx, pick(r, 5*time.Second, time.Second), server.Churn{Count: events, PerSecond: 1 / apart.Seconds(), GPUEvery: 1})
	out[cpuPerPublish] = c.cpu / float64(events)
	return err
}
