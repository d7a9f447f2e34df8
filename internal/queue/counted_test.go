package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/gpu-summary/gpu-summary-controller/internal/queue"
)

// TestNumbers follows a key: changes that become one, a pass, one that fails, and what
// arrives while it is worked on.
func TestNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(clock.RealClock{})
		defer q.ShutDown()
		start := time.Now()
		check := func(when string, want queue.Numbers) {
			t.Helper()
			synctest.Wait()
			if got := q.Numbers(); got != want {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		check("at first", queue.Numbers{})
		for range 5 {
			q.Add(queue.Summary)
			time.Sleep(time.Second)
		}
		check("five changes", queue.Numbers{Depth: 1, Oldest: start, Asked: 5})
		key, _ := q.Get()
		check("taken", queue.Numbers{Asked: 5, HandedOut: 1})
		q.Add(queue.Summary)
		check("another meanwhile", queue.Numbers{Asked: 6, HandedOut: 1})
		q.Done(key)
		check("done", queue.Numbers{Depth: 1, Oldest: time.Now(), Asked: 6, HandedOut: 1})
		key, _ = q.Get()
		q.AddRateLimited(key)
		q.Done(key)
		check("failed", queue.Numbers{Asked: 6, Retries: 1, HandedOut: 2, Failures: 1})
		time.Sleep(50 * time.Millisecond)
		check("to be tried again", queue.Numbers{Depth: 1, Oldest: time.Now(), Asked: 6, Retries: 1, HandedOut: 2, Failures: 1})
		key, _ = q.Get()
		q.Forget(key)
		q.Done(key)
		check("well", queue.Numbers{Asked: 6, Retries: 1, HandedOut: 3})
	})
}
