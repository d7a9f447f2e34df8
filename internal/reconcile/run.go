package reconcile

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/queue"
)

// Func is what a worker calls for each key.
type Func func(context.Context, queue.Key) (again time.Duration, err error)

// Run works on keys until ctx ends, then shuts the queue down and returns when
// the key in hand is finished. It is the one place where a failed pass is logged.
func Run(ctx context.Context, q queue.Queue, reconcile Func) {
	defer q.ShutDown()
	// The worker sleeps in Get, which knows nothing of contexts.
	stop := context.AfterFunc(ctx, q.ShutDown)
	defer stop()
	for next(ctx, q, reconcile) {
	}
}

// next handles one key and reports whether there may be another.
func next(ctx context.Context, q queue.Queue, reconcile Func) bool {
	key, shutdown := q.Get()
	if shutdown {
		return false
	}
	// Always, whatever happens below: a key that is never done is never handed
	// out again, a stall without a sound.
	defer q.Done(key)
	// Keys that were waiting when the queue was shut down are still handed out.
	if ctx.Err() != nil {
		return false
	}

	again, err := reconcile(ctx, key)
	switch {
	case err != nil:
		q.AddRateLimited(key)
		klog.FromContext(ctx).Error(err, "Reconcile failed, will retry", "key", key, "failures", q.NumRequeues(key))
	case again > 0:
		// Not Forget: putting a pass off is no success.
		q.AddAfter(key, again)
	default:
		q.Forget(key)
	}
	return true
}
