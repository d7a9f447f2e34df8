package lead_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

const (
	duration = lead.DefaultLeaseDuration
	deadline = lead.DefaultRenewDeadline
	period   = lead.DefaultRetryPeriod
	// poll is the longest that a standby takes to look again.
	poll = period*22/10 + 50*time.Millisecond
	// brief is what a few requests on a good day take.
	brief = 50 * time.Millisecond
)

// scene is a cluster in which a leads, b and c would like to, and the test says
// what happens.
type scene struct {
	*testing.T
	*referee
	server  *server
	a, b, c *process
}

// play lets one candidate after the other start and runs the script once a leads.
func play(t *testing.T, c candidate, timeout time.Duration, work func(r *referee, id string) func(context.Context, int64), script func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s := &scene{T: t, referee: newReferee(), server: newServer()}
		for id, p := range map[string]**process{"a": &s.a, "b": &s.b, "c": &s.c} {
			// a comes first, whatever the order of the map.
			delay := time.Duration(id[0]-'a') * 300 * time.Millisecond
			client := newLink(s.server, timeout)
			*p = start(ctx, func(ctx context.Context, client *link, id string, work func(context.Context, int64)) error {
				_ = pass(ctx, nil, delay)
				return c(ctx, client, id, work)
			}, client, id, work(s.referee, id))
		}
		time.Sleep(time.Second)
		if holder := s.server.holder(); holder != "a" {
			t.Fatalf("%q holds the lease, not a", holder)
		}
		script(s)
		stop()
		for _, p := range []*process{s.a, s.b, s.c} {
			p.weather.Store(&weather{})
			<-p.done
		}
		if t.Failed() {
			s.log(t)
		}
	})
}

// gentle writers end the write that they have begun, abrupt ones do not.
func gentle(takes time.Duration) func(r *referee, id string) func(context.Context, int64) {
	return func(r *referee, id string) func(context.Context, int64) { return r.writer(id, takes, false) }
}

func abrupt(r *referee, id string) func(context.Context, int64) {
	return r.writer(id, 100*time.Millisecond, true)
}

// stall returns weather in which requests wait, and what ends it.
func stall() (w *weather, heal func()) {
	healed := make(chan struct{})
	return &weather{there: healed}, func() { close(healed) }
}

// holdReplies lets requests arrive and their replies wait.
func holdReplies() (w *weather, heal func()) {
	healed := make(chan struct{})
	return &weather{back: healed}, func() { close(healed) }
}

// longest is for how long two wrote at once, at most.
func (s *scene) longest() (d time.Duration) {
	for _, o := range s.overlapped() {
		d = max(d, o)
	}
	return d
}

// Flaw a. Asked to end, client-go gives the lease back at once and lets work
// finish. Here it is the other way round.
func TestWorkReturnsBeforeTheLeaseIsGivenBack(t *testing.T) {
	// A write of eight seconds begins at 8 s, and the process is asked to end at 9 s.
	script := func(s *scene) (overlap, handOver time.Duration) {
		time.Sleep(8 * time.Second)
		s.a.terminate()
		<-s.a.done
		over := time.Now()
		for s.server.holder() != "b" && s.server.holder() != "c" {
			s.server.next()
		}
		time.Sleep(period)
		return s.longest(), s.server.written()[len(s.server.written())-1].at.Sub(over)
	}
	play(t, stock(true), deadline/2, gentle(8*time.Second), func(s *scene) {
		if overlap, _ := script(s); overlap == 0 {
			s.Error("client-go did not let two write at once; has it changed?")
		}
	})
	play(t, product, deadline/2, gentle(8*time.Second), func(s *scene) {
		overlap, handOver := script(s)
		if overlap != 0 {
			s.Errorf("two wrote at once for %v", overlap)
		}
		if s.a.err != nil {
			s.Errorf("the process that was asked to end returned %v", s.a.err)
		}
		if handOver > poll+period {
			s.Errorf("the next leader came after %v, want at most %v", handOver, poll)
		}
	})
}

// Flaw b. When its renewals get stuck, client-go first tries to release the lease,
// which gets stuck as well, and only then tells work to stop.
func TestWorkEndsBeforeTheLeaseDoes(t *testing.T) {
	// worked is for how long a worked after the last renewal that the server saw.
	script := func(s *scene) (worked time.Duration) {
		time.Sleep(20 * time.Second)
		w, heal := stall()
		s.a.weather.Store(w)
		<-s.a.done
		worked = time.Since(s.server.last())
		time.Sleep(duration + poll)
		heal()
		return worked
	}
	for _, timeout := range []time.Duration{0, deadline / 2} {
		play(t, stock(true), timeout, abrupt, func(s *scene) {
			worked := script(s)
			s.Logf("client-go, timeout %v: worked for %v after its last renewal, two at once for %v", timeout, worked, s.longest())
			if worked <= duration {
				s.Errorf("client-go ended after %v, before its lease did; has it changed?", worked)
			}
			if timeout == 0 && s.longest() == 0 {
				s.Error("client-go did not let two write at once; has it changed?")
			}
		})
		play(t, product, timeout, abrupt, func(s *scene) {
			if worked := script(s); worked > deadline {
				s.Errorf("worked for %v after the last renewal, want at most %v", worked, deadline)
			}
			if s.longest() != 0 {
				s.Errorf("two wrote at once for %v", s.longest())
			}
		})
	}
}

// Flaw c. Before client-go releases a lease it reads it, and then asks what it
// remembers, not what it read, whether the lease is its own.
func TestALeaseOfAnotherIsNotCleared(t *testing.T) {
	script := func(s *scene) (cleared bool, overlap time.Duration) {
		time.Sleep(20 * time.Second)
		w, heal := stall()
		s.a.weather.Store(w)
		for s.server.holder() == "a" {
			s.server.next()
		}
		time.Sleep(brief) // whoever takes the lease renews it at once
		heal()
		time.Sleep(2 * deadline)
		for _, write := range s.server.written() {
			cleared = cleared || write.holder == ""
		}
		return cleared, s.longest()
	}
	// Without a timeout the request that asks whose the lease is waits for long
	// enough. With one it takes luck. Of b and c, either may be the first to see that
	// the lease is free; when it is the one that led anyway, nothing comes of it.
	const trials = 20
	cleared, overlaps, longest := 0, 0, time.Duration(0)
	for trial := range trials {
		replay(uint64(trial))
		play(t, stock(true), 0, abrupt, func(s *scene) {
			c, overlap := script(s)
			if c {
				cleared++
			}
			// Flaw b has them overlap before that, for a moment.
			if overlap > duration-deadline {
				overlaps++
			}
			longest = max(longest, overlap)
		})
	}
	t.Logf("client-go: cleared another's lease in %d of %d trials, two at once in %d, the longest for %v", cleared, trials, overlaps, longest)
	if cleared == 0 || overlaps == 0 {
		t.Error("client-go did not clear another's lease; has it changed?")
	}
	for trial := range trials {
		replay(uint64(trial))
		play(t, product, 0, abrupt, func(s *scene) {
			if cleared, overlap := script(s); cleared || overlap != 0 {
				s.Errorf("cleared: %v, two wrote at once for %v", cleared, overlap)
			}
		})
	}
}

// Flaw d. client-go counts its lease from the reply to a renewal. The others count
// from when they see it, and that may be before.
func TestALeaseIsCountedFromTheRequest(t *testing.T) {
	script := func(s *scene) (worked time.Duration) {
		time.Sleep(20 * time.Second)
		w, heal := holdReplies()
		s.a.weather.Store(w)
		s.server.next()
		time.Sleep(deadline/2 - brief)
		s.a.weather.Store(&weather{refuse: true})
		heal()
		<-s.a.done
		return time.Since(s.server.last())
	}
	play(t, stock(false), deadline/2, abrupt, func(s *scene) {
		worked := script(s)
		s.Logf("client-go: worked for %v after its last renewal", worked)
		if worked <= duration {
			s.Errorf("client-go ended after %v, before its lease did; has it changed?", worked)
		}
	})
	play(t, product, deadline/2, abrupt, func(s *scene) {
		if worked := script(s); worked > deadline {
			s.Errorf("worked for %v after the last renewal, want at most %v", worked, deadline)
		}
	})
}

// Flaw e. When the reply to a renewal is lost, client-go tries again with the same
// renewTime. The others compare records and see no renewal; client-go believes
// that there was one.
func TestASecondTryIsARenewalToo(t *testing.T) {
	script := func(s *scene) (worked, advanced time.Duration) {
		time.Sleep(20 * time.Second)
		w, _ := holdReplies()
		s.a.weather.Store(w)
		s.server.next()
		first, at := s.server.renewed(), s.server.last()
		s.a.weather.Store(&weather{})
		s.server.next() // five seconds later, when the client has given up on the reply
		s.a.weather.Store(&weather{refuse: true})
		advanced = s.server.renewed().Sub(first)
		<-s.a.done
		return time.Since(at), advanced
	}
	play(t, stock(false), deadline/2, abrupt, func(s *scene) {
		worked, advanced := script(s)
		s.Logf("client-go: renewTime advanced by %v, worked for %v after the last renewal that others see, two at once for %v", advanced, worked, s.longest())
		if advanced != 0 || worked <= duration {
			s.Error("client-go renewed for the others to see; has it changed?")
		}
	})
	play(t, product, deadline/2, abrupt, func(s *scene) {
		worked, advanced := script(s)
		if advanced < deadline/2-brief {
			s.Errorf("renewTime advanced by %v, want %v", advanced, deadline/2)
		}
		if worked > deadline/2+deadline {
			s.Errorf("worked for %v after the first try, want at most %v", worked, deadline/2+deadline)
		}
		if s.longest() != 0 {
			s.Errorf("two wrote at once for %v", s.longest())
		}
	})
}
