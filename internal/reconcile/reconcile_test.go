package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/queue"
	"github.com/gpu-summary/gpu-summary-controller/internal/reconcile"
)

// loop runs a reconciler over a world of which only the number of changes is
// known, and records when each attempt to publish was made.
type loop struct {
	queue queue.Queue
	start time.Time

	mu       sync.Mutex
	dirty    bool          // something differs from what was published
	fail     error         // what the next attempts meet
	takes    time.Duration // how long a write takes
	attempts []time.Duration
	passes   int
}

// run starts the loop in virtual time, gives it to play, and stops it.
func run(t *testing.T, settle time.Duration, play func(*loop)) {
	synctest.Test(t, func(t *testing.T) {
		_, ctx := ktesting.NewTestContext(t)
		ctx, cancel := context.WithCancel(ctx)
		l := &loop{queue: queue.New(clock.RealClock{}), start: time.Now()}
		r := reconcile.New(reconcile.Options{
			Observe: func() (count.World, error) {
				l.set(func() { l.passes++ })
				return count.World{}, nil
			},
			Publish: l.publish,
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			reconcile.Run(ctx, l.queue, settle, r.Reconcile)
		}()
		play(l)
		cancel()
		<-done
	})
}

func (l *loop) publish(context.Context, *count.Snapshot) (publish.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dirty {
		return publish.Result{}, nil
	}
	l.attempts = append(l.attempts, time.Since(l.start))
	if l.fail != nil {
		return publish.Result{}, l.fail
	}
	l.dirty = false
	l.mu.Unlock()
	time.Sleep(l.takes)
	l.mu.Lock()
	return publish.Result{Writes: []publish.Write{{Action: publish.Updated}}}, nil
}

// set changes or reads what the worker also uses.
func (l *loop) set(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

func (l *loop) change() {
	l.set(func() { l.dirty = true })
	l.queue.Add(queue.Summary)
}

// after lets virtual time pass and everything that is due happen.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (l *loop) expect(t *testing.T, want ...time.Duration) {
	t.Helper()
	if got := l.seen(); !slices.Equal(got, want) {
		t.Errorf("publishes at %v, want %v", got, want)
	}
}

func (l *loop) seen() (attempts []time.Duration) {
	l.set(func() { attempts = slices.Clone(l.attempts) })
	return attempts
}

func TestTheFirstChangeGoesOutAtOnceAndLaterOnesTogether(t *testing.T) {
	run(t, time.Second, func(l *loop) {
		l.change()
		after(0)
		for range 50 {
			after(10 * time.Millisecond)
			l.change()
		}
		after(10 * time.Second)
		l.expect(t, 0, time.Second)
		l.change()
		after(10 * time.Second)
		l.expect(t, 0, time.Second, 10*time.Second+500*time.Millisecond)
	})
}

// A cluster that never stops changing is published once per window.
func TestConstantChangeIsPublishedOncePerWindow(t *testing.T) {
	run(t, time.Second, func(l *loop) {
		for range 4500 {
			l.change()
			after(time.Millisecond)
		}
		l.expect(t, 0, time.Second, 2*time.Second, 3*time.Second, 4*time.Second)
		// One pass for each window, not one for each event.
		l.set(func() {
			if l.passes > 6 {
				t.Errorf("%d passes for 5 publishes", l.passes)
			}
		})
	})
}

// Fifty changes during a slow write are one more write.
func TestChangesDuringAWriteAreOneMorePass(t *testing.T) {
	run(t, 0, func(l *loop) {
		l.set(func() { l.takes = 5 * time.Second })
		l.change()
		after(time.Second)
		for range 50 {
			l.change()
		}
		after(time.Minute)
		l.expect(t, 0, 5*time.Second)
	})
}

func TestFailureBacksOffAndSuccessForgets(t *testing.T) {
	run(t, 0, func(l *loop) {
		l.set(func() { l.fail = errors.New("conflict") })
		l.change()
		after(time.Second)
		l.expect(t, 0, 50*time.Millisecond, 150*time.Millisecond, 350*time.Millisecond, 750*time.Millisecond)
		after(10 * time.Minute)
		seen := l.seen()
		if gap := seen[len(seen)-1] - seen[len(seen)-2]; gap != 30*time.Second {
			t.Errorf("after ten minutes of failures the key is tried every %v, want 30s", gap)
		}
		l.set(func() { l.fail, l.attempts = nil, nil })
		after(time.Minute)
		if n := len(l.seen()); n != 1 {
			t.Errorf("%d attempts after the fault ended, want 1", n)
		}
		// The back-off starts over: the key was forgotten.
		l.set(func() { l.fail, l.attempts = errors.New("again"), nil })
		l.change()
		after(60 * time.Millisecond)
		if n := len(l.seen()); n != 2 {
			t.Errorf("%d attempts within 60 ms of the first failure, want 2", n)
		}
	})
}

// A server that refuses our writes is not asked at the rate of the events: adding
// a key passes by its back-off.
func TestEventsDoNotHurryAFailingKey(t *testing.T) {
	run(t, time.Second, func(l *loop) {
		l.set(func() { l.fail = errors.New("unavailable") })
		for range 4500 {
			l.change()
			after(time.Millisecond)
		}
		l.expect(t, 0, time.Second, 2*time.Second, 3*time.Second, 4*time.Second)
	})
}

// Run returns when the pass in hand is done, and starts no other, though a key
// is waiting.
func TestRunDrainsTheKeyInHandOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ctx := ktesting.NewTestContext(t)
		ctx, cancel := context.WithCancel(ctx)
		q := queue.New(clock.RealClock{})
		passes := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			reconcile.Run(ctx, q, 0, func(context.Context, queue.Key) (bool, error) {
				passes++
				time.Sleep(time.Minute)
				return false, nil
			})
		}()
		q.Add(queue.Summary)
		after(time.Second)
		q.Add(queue.Summary)
		cancel()
		synctest.Wait()
		select {
		case <-done:
			t.Error("Run returned while a pass was going on")
		default:
		}
		<-done
		if passes != 1 {
			t.Errorf("%d passes, want 1", passes)
		}
	})
}
