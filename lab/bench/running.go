package bench

import (
	"context"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
)

// pair is a contestant at rest beside its server.
type pair struct {
	*entry
	server *target
}

// settled starts a server and a contestant, and returns when the contestant has done its first work and rests.
func (r *runner) settled(ctx context.Context, w who, size server.Size, more ...string) (*pair, error) {
	t, err := r.serve(ctx, size, r.mode())
	if err != nil {
		return nil, err
	}
	e, err := r.enter(ctx, w, t, more...)
	if err != nil {
		t.stop()
		return nil, err
	}
	p := &pair{e, t}
	if _, err = e.ready(ctx, coldTimeout); err == nil && w != poll {
		_, err = e.quiet(ctx, quietTimeout)
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *pair) stop() {
	p.entry.stop()
	p.server.stop()
}

// idleRate is the CPU time that the contestant uses each second when nothing happens.
func (p *pair) idleRate(ctx context.Context, d time.Duration) (float64, error) {
	before, err := p.cpu()
	if err != nil {
		return 0, err
	}
	if err := p.pass(ctx, d); err != nil {
		return 0, err
	}
	after, err := p.cpu()
	return (after - before) / d.Seconds(), err
}

// pass lets time pass.
func (e *entry) pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-e.ended:
		return e.lost()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cost is what some changes cost.
type cost struct {
	cpu    float64 // seconds, without what being there costs
	writes []server.Write
	events []server.GPUEvent
}

// burst lets the cluster change and returns what that costs the contestant until it rests again.
func (p *pair) burst(ctx context.Context, idle time.Duration, c server.Churn) (cost, error) {
	rate, err := p.idleRate(ctx, idle)
	if err != nil {
		return cost{}, err
	}
	earlier, err := p.server.state(ctx, 0)
	if err != nil {
		return cost{}, err
	}
	before, err := p.cpu()
	if err != nil {
		return cost{}, err
	}
	start := time.Now()
	events, err := p.server.churn(ctx, c)
	if err != nil {
		return cost{}, err
	}
	after, err := p.quiet(ctx, quietTimeout)
	if err != nil {
		return cost{}, err
	}
	used := after - before - rate*time.Since(start).Seconds()
	state, err := p.server.state(ctx, len(earlier.Writes))
	return cost{cpu: max(0, used), writes: state.Writes, events: events}, err
}
