package lead_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

// running is a Lead whose work does what the test says.
type running struct {
	*lead.Lead
	*link
	terminate context.CancelFunc
	drain     time.Duration // between the end of work's context and its return
	fail      chan error    // what work returns by itself

	done    chan struct{}
	err     error         // what Run returned
	worked  chan struct{} // closed when work has started
	term    int64
	cause   error     // why work's context ended
	stopped time.Time // when it did
}

// run starts a candidate and lets it get as far as it does at once.
func run(ctx context.Context, t *testing.T, s *server, identity string, change ...func(*running, *lead.Options)) *running {
	t.Helper()
	o := options(identity)
	r := &running{link: newLink(s, deadline/2), fail: make(chan error), done: make(chan struct{}), worked: make(chan struct{})}
	for _, c := range change {
		c(r, &o)
	}
	var err error
	if r.Lead, err = lead.New(r.link, o); err != nil {
		t.Fatal(err)
	}
	ctx, r.terminate = context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	go func() {
		defer close(r.done)
		r.err = r.Run(ctx, r.work)
	}()
	after(brief)
	return r
}

func (r *running) work(ctx context.Context, term int64) error {
	r.term = term
	close(r.worked)
	select {
	case err := <-r.fail:
		return err
	case <-ctx.Done():
	}
	r.stopped, r.cause = time.Now(), context.Cause(ctx)
	time.Sleep(r.drain)
	return ctx.Err()
}

func (r *running) has(event chan struct{}) bool {
	select {
	case <-event:
		return true
	default:
		return false
	}
}

// after lets virtual time pass and everything that is due happen.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func within(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got > want {
		t.Errorf("%s took %v, want at most %v", what, got, want)
	}
}

// leads runs a test in virtual time in which a leads.
func leads(t *testing.T, test func(t *testing.T, s *server, a *running), change ...func(*running, *lead.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		replay(1)
		s := newServer()
		a := run(t.Context(), t, s, "a", change...)
		if !a.has(a.worked) || !a.Leading() || a.Holder() != "a" {
			t.Fatal("a does not lead")
		}
		test(t, s, a)
		a.terminate()
		<-a.done
	})
}

func TestWhoNeverLedEndsWithoutAWord(t *testing.T) {
	leads(t, func(t *testing.T, s *server, _ *running) {
		b := run(t.Context(), t, s, "b")
		after(time.Minute)
		if b.has(b.worked) || b.Leading() || b.Holder() != "a" {
			t.Error("b does not know that a leads")
		}
		b.terminate()
		synctest.Wait()
		if !b.has(b.done) || b.err != nil {
			t.Errorf("b has returned: %v, %v", b.has(b.done), b.err)
		}
		if slices.ContainsFunc(s.written(), func(w write) bool { return w.holder != "a" }) {
			t.Errorf("b wrote: %v", s.written())
		}
	})
}

// Asked to end, work has all the time it needs; the lease stays ours until it has
// returned, and another's very soon after.
func TestACleanEndHandsOver(t *testing.T) {
	const drain = time.Minute
	leads(t, func(t *testing.T, s *server, a *running) {
		b := run(t.Context(), t, s, "b")
		after(10 * time.Second)
		a.terminate()
		after(drain - time.Second)
		if !a.Leading() || s.holder() != "a" || b.has(b.worked) {
			t.Error("a does not lead while its work drains")
		}
		if since := time.Since(s.last("a")); since > period+brief {
			t.Errorf("the lease was last renewed %v ago", since)
		}
		<-a.done
		ended := time.Now()
		if a.err != nil || s.holder() != "" || a.Leading() {
			t.Errorf("a returned %v, the holder is %q", a.err, s.holder())
		}
		<-b.worked
		within(t, "to take over", time.Since(ended), poll)
		b.terminate()
		<-b.done
	}, func(a *running, _ *lead.Options) { a.drain = drain })
}

// cut lets no request of a through any more, and waits for the end.
func cut(a *running) (worked time.Duration) {
	after(20 * time.Second)
	last := a.server.last("a")
	a.weather.Store(&weather{refuse: true})
	<-a.done
	return a.stopped.Sub(last)
}

func TestALossIsReturnedAfterWorkHas(t *testing.T) {
	const drain = 3 * time.Second
	leads(t, func(t *testing.T, s *server, a *running) {
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

// Somebody deleted the Lease and b made it anew, and a is asked to end before it
// finds out.
func TestGivingBackSparesAnother(t *testing.T) {
	leads(t, func(t *testing.T, s *server, a *running) {
		b := run(t.Context(), t, s, "b")
		a.weather.Store(&weather{refuse: true})
		s.remove()
		s.until("b")
		a.weather.Store(&weather{})
		a.terminate()
		<-a.done
		if s.holder() != "b" {
			t.Errorf("the holder is %q, want b", s.holder())
		}
		after(time.Minute)
		if !b.Leading() {
			t.Error("b does not lead any more")
		}
		b.terminate()
		<-b.done
	})
}

func TestALeaseThatIsGoneIsMadeAnewInTheSameTerm(t *testing.T) {
	leads(t, func(t *testing.T, s *server, a *running) {
		s.remove()
		after(period + brief)
		if !a.Leading() || s.holder() != "a" || s.term() != a.term {
			t.Errorf("the holder is %q in term %d, want a in %d", s.holder(), s.term(), a.term)
		}
		s.remove()
		a.terminate()
		<-a.done
		if a.err != nil {
			t.Errorf("Run returned %v", a.err)
		}
	}, func(_ *running, o *lead.Options) { o.MinTerm = func() int64 { return 7 } })
}

func TestWhatWorkReturnsIsReturned(t *testing.T) {
	broken := errors.New("broken")
	for _, want := range []error{broken, nil} {
		leads(t, func(t *testing.T, s *server, a *running) {
			a.fail <- want
			<-a.done
			if !errors.Is(a.err, want) || s.holder() != "" {
				t.Errorf("Run returned %v, want %v; the holder is %q", a.err, want, s.holder())
			}
		})
	}
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

// Giving back is a courtesy. Without an API server it is given up.
func TestGivingBackIsBounded(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		leads(t, func(t *testing.T, _ *server, a *running) {
			after(time.Second)
			w := &weather{refuse: true}
			if stuck {
				w, _ = stall()
			}
			a.weather.Store(w)
			a.terminate()
			since := time.Now()
			<-a.done
			within(t, "to end", time.Since(since), deadline)
			if a.err != nil {
				t.Errorf("Run returned %v", a.err)
			}
		}, func(a *running, _ *lead.Options) { a.timeout = 0 })
	}
}

// A renewal that was on its way when the election ended arrives in the middle of
// giving back. The first attempt meets a conflict, the second does not.
func TestGivingBackSurvivesALateRenewal(t *testing.T) {
	leads(t, func(t *testing.T, s *server, a *running) {
		s.next()
		w, heal := stall()
		w.late = true
		a.weather.Store(w)
		after(period + brief) // a renewal is stuck
		a.weather.Store(&weather{delay: time.Second})
		a.terminate()
		after(1500 * time.Millisecond) // giving back has read the Lease
		heal()
		<-a.done
		if a.err != nil || s.holder() != "" {
			t.Errorf("Run returned %v, the holder is %q", a.err, s.holder())
		}
	})
}

// The reply to what took the lease is slow, and the process is asked to end. It
// never led, and gives back what it has all the same.
func TestALeaseTakenUnawaresIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a := run(t.Context(), t, s, "a", func(a *running, _ *lead.Options) { a.weather.Store(&weather{delay: time.Second}) })
		s.next() // the reply takes a second
		after(time.Second / 2)
		a.terminate()
		<-a.done
		if a.err != nil || s.holder() != "" || a.has(a.worked) {
			t.Errorf("Run returned %v, the holder is %q", a.err, s.holder())
		}
	})
}

func TestTermsRise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var terms []int64
		// The same name twice is what Identity is there to prevent. It is given back in
		// between, and so it counts as another.
		for _, identity := range []string{"a", "b", "b", "a"} {
			r := run(t.Context(), t, s, identity)
			<-r.worked
			after(time.Minute)
			terms = append(terms, r.term)
			if s.term() != r.term {
				t.Errorf("the Lease says term %d while work was told %d", s.term(), r.term)
			}
			r.terminate()
			<-r.done
		}
		if want := []int64{0, 1, 2, 3}; !slices.Equal(terms, want) {
			t.Errorf("terms %v, want %v", terms, want)
		}
	})
}

// What is published says term 41, and somebody deleted the Lease.
func TestMinTerm(t *testing.T) {
	for least, want := range map[int64]int64{42: 42, -1: 0, 1 << 40: 0} {
		leads(t, func(t *testing.T, s *server, a *running) {
			after(time.Minute)
			if a.term != want || s.term() != want {
				t.Errorf("with at least %d: work was told term %d, the Lease says %d, want %d", least, a.term, s.term(), want)
			}
		}, func(_ *running, o *lead.Options) { o.MinTerm = func() int64 { return least } })
	}
}

func TestOnNewLeader(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	leads(t, func(t *testing.T, s *server, a *running) {
		b := run(t.Context(), t, s, "b", func(b *running, o *lead.Options) {
			o.OnNewLeader = func(identity string) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, identity)
				if b.Holder() != identity { // nor must this deadlock
					t.Errorf("told of %q while the holder is %q", identity, b.Holder())
				}
			}
		})
		after(time.Minute)
		a.terminate()
		<-b.worked
		b.terminate()
		<-b.done
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"a", "", "b", ""}; !slices.Equal(seen, want) {
			t.Errorf("b was told %q, want %q", seen, want)
		}
	})
}

// Health is about work that was told to stop and does not.
func TestHealth(t *testing.T) {
	const bound = duration + 5*time.Second
	leads(t, func(t *testing.T, s *server, a *running) {
		b := run(t.Context(), t, s, "b")
		after(time.Minute)
		a.weather.Store(&weather{refuse: true})
		after(bound - period)
		if err := errors.Join(a.Health(bound), b.Health(bound)); err != nil {
			t.Errorf("before the bound: %v", err)
		}
		after(period + time.Second)
		if a.Health(bound) == nil {
			t.Error("work goes on long after the lease, and all is well")
		}
		if err := b.Health(bound); err != nil {
			t.Errorf("the new leader: %v", err)
		}
		<-a.done
		if err := a.Health(bound); err != nil {
			t.Errorf("after work has returned: %v", err)
		}
		b.terminate()
		<-b.done
	}, func(a *running, _ *lead.Options) { a.drain = time.Minute })
}
