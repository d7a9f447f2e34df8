package lead_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

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
