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

	"k8s.io/klog/v2"

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
}

// Reconciler makes a key correct. It keeps nothing from one pass to the next.
type Reconciler struct{ Options }

// New makes a reconciler.
func New(o Options) *Reconciler { return &Reconciler{Options: o} }

// Reconcile makes the cluster match the cache once and reports whether that took
// a write.
func (r *Reconciler) Reconcile(ctx context.Context, _ queue.Key) (wrote bool, err error) {
	world, err := r.Observe()
	if err != nil {
		return false, err
	}
	result, err := r.Publish(ctx, count.Take(world))
	if result.Wrote() {
		klog.FromContext(ctx).V(2).Info("Published", "reasons", result.Reasons(), "changes", result.String(),
			"pods", world.Observed.Pods, "nodes", world.Observed.Nodes)
	}
	return result.Wrote(), err
}
