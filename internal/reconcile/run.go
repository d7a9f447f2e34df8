package reconcile

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/queue"
)

// Func is what the worker calls for each key. It reports whether it wrote.
type Func func(context.Context, queue.Key) (wrote bool, err error)

// Run works on keys until ctx ends, then shuts the queue down and returns when
// the key in hand is finished.
//
// After a pass that wrote or failed it takes no key for the settle time. The
// first change after quiet is thus published at once, and whatever arrives within
// the window becomes one key, because the queue makes one of equal keys anyway.
// The window is entered from the front and never extended, so that a cluster that
// never stops changing is still published once per window; and a server that
// refuses our writes is not asked at the rate of the events, though an event
// passes by the queue's back-off.
//
// (Handing the key back with AddAfter would do as well, but costs a pass for every
// event in the window, and workqueue_retries_total counts each as a retry: the
// number that is there to show failures would climb while all is well.)
func Run(ctx context.Context, q queue.Queue, settle time.Duration, reconcile Func) {
	defer q.ShutDown()
	// The worker sleeps in Get, which knows nothing of contexts.
	stop := context.AfterFunc(ctx, q.ShutDown)
	defer stop()
	for {
		busy, more := next(ctx, q, reconcile)
		if !more {
			return
		}
		if busy {
			rest(ctx, settle)
		}
	}
}

// next handles one key. It reports whether that took a write or an attempt at
// one, and whether there may be another key. It is the one place where a failed
// pass is logged.
func next(ctx context.Context, q queue.Queue, reconcile Func) (busy, more bool) {
	key, shutdown := q.Get()
	if shutdown {
		return false, false
	}
	// Always, whatever happens below: a key that is never done is never handed
	// out again, a stall without a sound.
	defer q.Done(key)
	// Keys that were waiting when the queue was shut down are still handed out.
	if ctx.Err() != nil {
		return false, false
	}
	wrote, err := reconcile(ctx, key)
	if err != nil {
		q.AddRateLimited(key)
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Reconcile failed, will retry", "key", key, "failures", q.NumRequeues(key))
		}
		return true, true
	}
	q.Forget(key)
	return wrote, true
}

func rest(ctx context.Context, settle time.Duration) {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
