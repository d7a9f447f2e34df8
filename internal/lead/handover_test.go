package lead_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

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
		if since := time.Since(s.last()); since > period+brief {
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
