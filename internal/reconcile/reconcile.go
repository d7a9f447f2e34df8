// Package reconcile is the loop: a key in, a cluster that is a little more right
// out.
//
// The reconciler is the fifth of the controller's components and the only one
// with an opinion. It is level-triggered: a key says that something may have
// changed, never what, and a pass observes the whole cache, counts it and
// publishes the difference. Miss ten events, and the eleventh still gives the
// right answer.
package reconcile

import (
	"context"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/queue"
)

// Options wires a Reconciler to the stages before and behind it.
type Options struct {
	// Observe reads the caches.
	Observe func() (count.World, error)
	// Publish writes what differs.
	Publish func(context.Context, *count.Snapshot) (publish.Result, error)
	// GPUs names the resources that are counted.
	GPUs count.Resources
	// Settle is the least time between two writes.
	Settle time.Duration
	Clock  clock.PassiveClock
}

// Reconciler makes a key correct. Its queue never hands out a key twice at a
// time, so that it needs no lock.
type Reconciler struct {
	Options
	wrote time.Time
}

// New makes a reconciler.
func New(o Options) *Reconciler { return &Reconciler{Options: o} }

// Reconcile makes the world match the cache once. There are three outcomes, as
// the worker understands them: an error, and the key comes back with back-off; a
// duration above zero, and it comes back after that; neither, and it is done.
//
// The first change after quiet is published at once. Those that follow within
// the settle window wait for its end and go out as one write: the window is
// entered from the front and never extended, so that a cluster that never stops
// changing is still published once per window.
func (r *Reconciler) Reconcile(ctx context.Context, _ queue.Key) (again time.Duration, err error) {
	if wait := r.Settle - r.Clock.Since(r.wrote); !r.wrote.IsZero() && wait > 0 {
		return wait, nil
	}
	world, err := r.Observe()
	if err != nil {
		return 0, err
	}
	result, err := r.Publish(ctx, count.Take(world, r.GPUs))
	if err != nil {
		return 0, err
	}
	if result.Wrote() {
		r.wrote = r.Clock.Now()
		klog.FromContext(ctx).V(2).Info("Published", "action", result.Action, "foreignEdit", result.Foreign,
			"changes", result.String(), "pods", world.Observed.Pods, "nodes", world.Observed.Nodes)
	}
	return 0, nil
}
