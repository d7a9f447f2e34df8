package diff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// DRAOptions say what to compare with what a real kube-scheduler allocates.
type DRAOptions struct {
	Nodes, Pods int
	Seed        uint64
	// Counter is who is judged, DRAOurs when nil.
	Counter DRACounter
	// Progress gets lines for people; nil is silent.
	Progress io.Writer
}

// Check reports what is wrong with the options.
func (o DRAOptions) Check() error {
	switch {
	case o.Pods < 1:
		return errors.New("--pods has to be at least 1")
	case o.Nodes < 1:
		return errors.New("--nodes has to be at least 1")
	}
	return nil
}

func (o DRAOptions) say(format string, args ...any) {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, format+"\n", args...)
	}
}

// RunDRA starts a control plane, lets its scheduler give random pods devices of DRA
// and of device plugins, and says where our count is another than that of the
// objects. The seed decides what there is; who gets which device is the scheduler's
// business, and can differ from run to run.
func RunDRA(ctx context.Context, o DRAOptions) (report *DRAReport, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	begin := time.Now()
	p, err := plane.Start(ctx, plane.Options{Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopErr := p.Stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("stop the lab: %w", stopErr))
		}
	}()
	ctx, cancel := untilFailure(ctx, p)
	defer cancel()
	states, err := allocateDRA(ctx, p, o)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // says more than the request that failed for it
		}
		return nil, err
	}
	if report, err = judgeDRA(states, o); err != nil {
		return nil, err
	}
	report.Seconds = time.Since(begin).Seconds()
	return report, nil
}

// untilFailure is ctx until a component of the plane dies, which is then the cause.
func untilFailure(ctx context.Context, p *plane.Plane) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case err := <-p.Failed():
			cancel(err)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// allocateDRA fills an empty cluster and returns what is in it each time that its
// scheduler has settled.
func allocateDRA(ctx context.Context, p *plane.Plane, o DRAOptions) ([]*DRAObjects, error) {
	client, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	queued, err := queued(p)
	if err != nil {
		return nil, err
	}
	c := &draCluster{client: client, queued: queued, plan: planDRA(o.Seed, o.Nodes, o.Pods)}
	o.say("creating %d nodes, %d slices, %d claims and %d pods", len(c.plan.nodes), len(c.plan.slices), len(c.plan.claims), len(c.plan.pods))
	if err := c.offer(ctx); err != nil {
		return nil, err
	}
	return c.play(ctx, o.say)
}

// judgeDRA lets both sides count what there was each time.
func judgeDRA(states []*DRAObjects, o DRAOptions) (*DRAReport, error) {
	counter := o.Counter
	if counter == nil {
		counter = DRAOurs
	}
	r := &DRAReport{Seed: o.Seed, PodsCreated: o.Pods, States: len(states)}
	for _, objects := range states {
		// The recount goes first: should ours change an object, the judge has seen it
		// as it was.
		want, held, err := draRecount(objects)
		if err != nil {
			return nil, err
		}
		rows, found := compareDRA(want, counter(objects))
		for i := range found {
			found[i].When = objects.When
		}
		r.Rows += rows
		r.Found = append(r.Found, found...)
		r.describe(objects) // the last one is reported
		r.DevicesAllocated = held
	}
	r.Mismatches = len(r.Found)
	return r, nil
}
