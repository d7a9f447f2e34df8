// Without this, rand.Seed does nothing.
//
//go:debug randseednop=0

package lead_test

import (
	"context"
	"flag"
	"fmt"
	oldrand "math/rand"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

var (
	stalls = flag.Int("stalls", 2000, "how many stalls of the lease's traffic to simulate")
	seed   = flag.Uint64("seed", 1, "what the simulation is made from")
)

// perRun is how many stalls one simulated cluster sees, one after the other.
const perRun = 100

// longestWrite is LeaseDuration - RenewDeadline, less a second, and that is all that
// is asked of a writer.
const longestWrite = lead.DefaultLeaseDuration - lead.DefaultRenewDeadline - time.Second

// TestStallsOfTheLease lets three replicas write without a pause while the way of
// the leader to its Lease, and nothing else, stalls, fails, and heals, at random.
// client-go's elector has two of them write at once, and this package never.
func TestStallsOfTheLease(t *testing.T) {
	ours := simulate(t, product, false)
	t.Logf("this package: %v", ours)
	if ours.overlaps != 0 {
		t.Errorf("two wrote at once, %d times", ours.overlaps)
	}
	// Whoever never leads never overlaps.
	if ours.share() < 60 {
		t.Errorf("somebody wrote for %.0f%% of the time, want at least 60%%", ours.share())
	}
	for _, release := range []bool{true, false} {
		theirs := simulate(t, stock(release), true)
		t.Logf("client-go with ReleaseOnCancel %v: %v", release, theirs)
		if release && theirs.overlaps == 0 {
			t.Error("client-go had no overlap: this simulation proves nothing")
		}
	}
}

// TestASeedIsReplayed: what a seed showed, it shows again.
func TestASeedIsReplayed(t *testing.T) {
	var histories [2][]string
	for i := range histories {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(product, false, 7)
			c.run(t, perRun)
			histories[i] = c.history
		})
	}
	for i := range min(len(histories[0]), len(histories[1])) {
		if histories[0][i] != histories[1][i] {
			t.Fatalf("the histories part:\n%s\n%s", histories[0][i], histories[1][i])
		}
	}
	if len(histories[0]) != len(histories[1]) || len(histories[0]) < perRun {
		t.Errorf("histories of %d and %d lines", len(histories[0]), len(histories[1]))
	}
}

// outcome is what became of a simulation.
type outcome struct {
	stalls, overlaps, starts int
	longest                  time.Duration
	busy, total              time.Duration
	took                     time.Duration
}

// share is for how much of the time somebody wrote, in percent.
func (o outcome) share() float64 { return 100 * o.busy.Seconds() / o.total.Seconds() }

func (o outcome) String() string {
	return fmt.Sprintf("seed %d, %d stalls: two wrote at once %d times, the longest for %v; %d starts of work, %.0f%% of %.0f h written; simulated in %v",
		*seed, o.stalls, o.overlaps, o.longest.Round(time.Millisecond), o.starts, o.share(), o.total.Hours(), o.took.Round(10*time.Millisecond))
}

func simulate(t *testing.T, candidate candidate, abrupt bool) outcome {
	var o outcome
	begin := time.Now()
	for run := *seed; o.stalls < *stalls; run++ {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(candidate, abrupt, run)
			c.run(t, perRun)
			o.stalls += perRun
			o.starts += len(c.terms)
			o.overlaps += len(c.overlaps)
			for _, long := range c.overlaps {
				o.longest = max(o.longest, long)
			}
			o.busy += c.busy
			o.total += time.Since(c.start)
			if abrupt {
				return // client-go gives no term
			}
			if len(c.overlaps) > 0 {
				t.Errorf("-seed=%d: two wrote at once: %v", run, c.overlaps)
			}
			for i := range c.terms[1:] {
				if c.terms[i] >= c.terms[i+1] {
					t.Errorf("-seed=%d: the terms do not rise: %v", run, c.terms)
				}
			}
			if t.Failed() {
				c.log(t)
			}
		})
		if t.Failed() {
			return o // one history is enough to read
		}
	}
	o.took = time.Since(begin)
	return o
}

// cluster is three replicas that are restarted when they end.
type cluster struct {
	*referee
	server    *server
	candidate candidate
	abrupt    bool
	random    *rand.Rand
	links     []*link

	mu        sync.Mutex
	terminate []context.CancelFunc // of each replica's process
}

// replay makes the jitter of client-go's retries follow from a seed.
func replay(seed uint64) {
	oldrand.Seed(int64(seed)) //nolint:staticcheck // deprecated, but the one way to replay what others draw
}

func newCluster(c candidate, abrupt bool, seed uint64) *cluster {
	replay(seed)
	s := &cluster{referee: newReferee(), server: newServer(), candidate: c, abrupt: abrupt, random: rand.New(rand.NewPCG(seed, 0))}
	for range 3 {
		s.links = append(s.links, newLink(s.server, lead.DefaultRenewDeadline/2))
		s.terminate = append(s.terminate, func() {})
	}
	return s
}

func (s *cluster) run(t *testing.T, stalls int) {
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	var wg sync.WaitGroup
	for i := range s.links {
		random := rand.New(rand.NewPCG(s.random.Uint64(), 0))
		wg.Go(func() { s.replica(ctx, i, random) })
		time.Sleep(between(s.random, 0, time.Second))
	}
	for range stalls {
		time.Sleep(between(s.random, 0, 8*time.Second))
		s.stall(between(s.random, 0, 30*time.Second))
	}
	cancel()
	wg.Wait()
}

// replica is a pod: a process that ends is started again, under another identity.
func (s *cluster) replica(ctx context.Context, i int, random *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("%c%d", 'a'+i, n)
		process, terminate := context.WithCancel(ctx)
		s.mu.Lock()
		s.terminate[i] = terminate
		s.mu.Unlock()
		_ = s.candidate(process, s.links[i], id, s.writer(id, between(random, 10*time.Millisecond, longestWrite), s.abrupt))
		terminate()
		_ = pass(ctx, nil, between(random, 0, 10*time.Second))
	}
}

// stall lets something happen to the traffic of the lease's holder, and sometimes
// of another replica as well, and heals it after a while. One holder in five is
// asked to end meanwhile.
func (s *cluster) stall(length time.Duration) {
	victims := []int{s.random.IntN(len(s.links))}
	if holder := s.server.holder(); holder != "" {
		victims[0] = int(holder[0] - 'a')
	}
	if s.random.IntN(4) == 0 {
		victims = append(victims, s.random.IntN(len(s.links)))
	}
	healed := make(chan struct{})
	for _, v := range victims {
		w := s.storm(healed)
		s.links[v].weather.Store(w)
		s.note("%c: refuse %v, there %v, back %v, delay %v, late %v, for %v", 'a'+v, w.refuse, w.there != nil, w.back != nil, w.delay, w.late, length)
	}
	term := between(s.random, 0, 5*length+1)
	time.Sleep(min(term, length))
	if term < length {
		s.note("%c: SIGTERM", 'a'+victims[0])
		s.mu.Lock()
		s.terminate[victims[0]]()
		s.mu.Unlock()
		time.Sleep(length - term)
	}
	close(healed)
	for _, v := range victims {
		s.links[v].weather.Store(&weather{delay: between(s.random, 0, 200*time.Millisecond)})
	}
}

func (s *cluster) storm(healed chan struct{}) *weather {
	w := &weather{delay: between(s.random, 0, 200*time.Millisecond), late: s.random.IntN(2) == 0}
	switch s.random.IntN(5) {
	case 0:
		w.refuse = true
	case 1:
		w.there = healed
	case 2:
		w.back = healed
	case 3:
		w.there, w.back = healed, healed
	case 4:
		w.delay = between(s.random, 0, 3*time.Second)
	}
	return w
}

func between(random *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(random.Int64N(int64(high-low)))
}
