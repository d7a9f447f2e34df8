// Package queue is the second stage: a change in, a key out, or nothing when
// nothing that is counted has changed.
//
// The workqueue is the fourth of the controller's five components. It gives
// three things that are never written by hand here: a key that is added while it
// waits is handed out once, a key is never worked on twice at a time, and a key
// that fails comes back later and later.
package queue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Name labels the workqueue_* metrics. A queue without a name has none.
const Name = "gpu-summary"

// Key names something to make correct. It is a value: two equal keys coalesce,
// which two pointers would never do.
type Key string

// Summary is the only key. A pass recomputes everything from the cache, so there
// is nothing that a key for a single pod could tell it.
const Summary Key = "summary"

// Retry delays of a key that keeps failing. client-go's default limiter would
// climb to 16 minutes and leave a repaired cluster with old numbers for as long.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Queue is the typed, named, rate limited workqueue.
type Queue = workqueue.TypedRateLimitingInterface[Key]

// New makes the queue. It starts the goroutine that waits for delayed keys;
// ShutDown ends it.
func New(c clock.WithTicker) *Counted {
	l := &line{clock: c}
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Name: Name, Clock: c, Queue: l})
	return &Counted{line: l, Queue: workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[Key]{
			Name: Name, Clock: c,
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{Name: Name, Clock: c, Queue: ready}),
		},
	)}
}
