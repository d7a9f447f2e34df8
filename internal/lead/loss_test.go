package lead_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

// cut lets no request of a through any more, and waits for the end.
func cut(a *running) (worked time.Duration) {
	after(20 * time.Second)
	last := a.server.last()
	a.weather.Store(&weather{refuse: true})
	<-a.done
	return a.stopped.Sub(last)
}

func TestALossIsReturnedAfterWorkHas(t *testing.T) {
	const drain = 3 * time.Second
	leads(t, func(t *testing.T, _ *server, a *running) {
		within(t, "to stop after the last renewal", cut(a), deadline)
		if time.Since(a.stopped) != drain {
			t.Errorf("Run returned %v after work was told to stop, want %v", time.Since(a.stopped), drain)
		}
		if !errors.Is(a.err, lead.ErrLost) || !errors.Is(a.cause, lead.ErrLost) {
			t.Errorf("Run returned %v, the cause for work was %v, want a loss", a.err, a.cause)
		}
		if errors.Is(a.err, context.Canceled) {
			t.Errorf("%v: what work was told is no news", a.err)
		}
	}, func(a *running, _ *lead.Options) { a.drain = drain })
}

// After a loss nothing is written, though the network heals while work drains.
func TestAfterALossNothingIsWritten(t *testing.T) {
	leads(t, func(t *testing.T, s *server, a *running) {
		after(20 * time.Second)
		w, heal := stall()
		a.weather.Store(w)
		synctest.Wait()
		before := len(s.written())
		// Renewing is given up two seconds after the deadline.
		after(deadline + period/2)
		if a.Leading() || a.has(a.done) {
			t.Fatal("a is not draining after a loss")
		}
		a.weather.Store(&weather{})
		heal()
		asked := a.asked.Load()
		<-a.done
		if n := len(s.written()) - before; n != 0 {
			t.Errorf("%d writes after the loss", n)
		}
		if n := a.asked.Load() - asked; n != 0 {
			t.Errorf("%d requests after the loss", n)
		}
	}, func(a *running, _ *lead.Options) { a.drain = time.Minute })
}

// Work that writes on after its lease is why a loss during a clean end is a loss.
func TestALossWhileDrainingIsALoss(t *testing.T) {
	leads(t, func(t *testing.T, _ *server, a *running) {
		a.terminate()
		cut(a)
		if !errors.Is(a.err, lead.ErrLost) {
			t.Errorf("Run returned %v, want a loss", a.err)
		}
	}, func(a *running, _ *lead.Options) { a.drain = time.Minute })
}

// Somebody deleted the Lease and b made it anew. a finds out at its next renewal
// and does not argue for another ten seconds.
func TestAnotherHolderIsALossAtOnce(t *testing.T) {
	leads(t, func(t *testing.T, s *server, a *running) {
		b := run(t.Context(), t, s, "b")
		a.weather.Store(&weather{refuse: true}) // a would make it anew itself
		s.remove()
		s.until("b")
		a.weather.Store(&weather{})
		since := time.Now()
		<-a.done
		within(t, "to notice", time.Since(since), period+brief)
		if !errors.Is(a.err, lead.ErrLost) {
			t.Errorf("Run returned %v, want a loss", a.err)
		}
		synctest.Wait()
		if b.term <= a.term {
			t.Errorf("b leads in term %d, after %d", b.term, a.term)
		}
		b.terminate()
		<-b.done
	})
}

// Another led and gave back while a heard nothing. The elector would take the lease
// again and call that a renewal, while work goes on in a term that is over.
func TestALeaseIsNotTakenTwice(t *testing.T) {
	leads(t, func(t *testing.T, s *server, a *running) {
		a.weather.Store(&weather{}) // no request is too slow to be called back
		s.clear()
		<-a.done
		if !errors.Is(a.err, lead.ErrLost) || s.holder() != "" {
			t.Errorf("Run returned %v, the holder is %q", a.err, s.holder())
		}
	})
}

// The reply to what took the lease comes when it is too late to begin.
func TestWorkDoesNotBeginUnderAnOldLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := run(t.Context(), t, newServer(), "a", func(a *running, _ *lead.Options) {
			a.timeout = 0
			a.weather.Store(&weather{delay: deadline / 2})
		})
		<-a.done
		if !errors.Is(a.err, lead.ErrLost) || a.has(a.worked) {
			t.Errorf("Run returned %v, work has begun: %v", a.err, a.has(a.worked))
		}
	})
}

// A loss does not hide what work failed of, nor the other way round.
func TestALossAndAFailureAreBothReturned(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		client := newLink(newServer(), deadline/2)
		l, err := lead.New(client, options("a"))
		if err != nil {
			t.Fatal(err)
		}
		err = l.Run(klog.NewContext(t.Context(), klog.Logger{}), func(ctx context.Context, _ int64) error {
			client.weather.Store(&weather{refuse: true})
			<-ctx.Done()
			return broken
		})
		if !errors.Is(err, broken) || !errors.Is(err, lead.ErrLost) {
			t.Errorf("Run returned %v", err)
		}
	})
}
