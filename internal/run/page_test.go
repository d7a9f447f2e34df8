package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

// somewhere plays the caches of a replica.
type somewhere struct {
	mu      sync.Mutex
	world   count.World
	fail    error
	lacking map[string]error
	takes   time.Duration
	reads   atomic.Int32
	at      atomic.Int32 // reads under way
	most    atomic.Int32
}

func (s *somewhere) World() (count.World, error) {
	s.reads.Add(1)
	s.most.Store(max(s.most.Load(), s.at.Add(1)))
	defer s.at.Add(-1)
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world, s.fail
}

func (s *somewhere) Synced() map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lacking
}

func (s *somewhere) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func worldAt(version string, pods ...*count.Pod) count.World {
	return count.World{NodesKnown: true, Nodes: []*count.Node{{Name: "n"}}, Pods: pods, Observed: count.Observed{Pods: version, Nodes: "1"}}
}

func reader(s *somewhere, leading bool) *surfaces {
	show := newSurfaces()
	show.leading = func() bool { return leading }
	show.attach(s)
	return show
}

var aPod = &count.Pod{Key: "a/b", Node: "n", Requests: count.Amounts{{Resource: count.NVIDIA, Value: 2}}}

// TestAStandbyAnswersToo, from its own cache, at most once a second and one reader for
// all; and its metrics say as little of the cluster as ever.
func TestAStandbyAnswersToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caches := &somewhere{world: worldAt("1", aPod), takes: 100 * time.Millisecond}
		show := reader(caches, false)
		crowd := func() (seen []*count.Snapshot) {
			var wg sync.WaitGroup
			var mu sync.Mutex
			for range 50 {
				wg.Go(func() {
					v := show.reading(t.Context())
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, v.Snapshot)
				})
			}
			wg.Wait()
			return slices.Compact(seen)
		}
		first := crowd()
		if len(first) != 1 || first[0] == nil || caches.reads.Load() != 1 {
			t.Fatalf("%d snapshots from %d reads", len(first), caches.reads.Load())
		}
		if v := show.view(); v.Snapshot != nil || !v.Taken.IsZero() {
			t.Errorf("what readers made us count is in the metrics: %+v", v)
		}
		caches.set(func() { caches.world = worldAt("2", aPod, aPod) })
		if again := crowd(); again[0] != first[0] || caches.reads.Load() != 1 {
			t.Errorf("within the second: %d reads", caches.reads.Load())
		}
		time.Sleep(time.Second)
		second := crowd()
		if len(second) != 1 || second[0] == first[0] || second[0].Observed.Pods != "2" || caches.reads.Load() != 2 {
			t.Errorf("after it: %d snapshots from %d reads", len(second), caches.reads.Load())
		}
		if got := show.reading(t.Context()); len(got.Pods) != 2 {
			t.Errorf("%d pods beside the snapshot", len(got.Pods))
		}
		time.Sleep(time.Second)
		if third := crowd(); third[0] != second[0] || caches.reads.Load() != 3 {
			t.Error("counted again though nothing has changed")
		}
		if caches.most.Load() != 1 {
			t.Errorf("%d reads at a time", caches.most.Load())
		}
	})
}

// TestThePassIsTakenOver if it has counted the same, so that a leader does not count
// twice; and readers see what is newer if the pass is behind.
func TestThePassIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caches := &somewhere{world: worldAt("1", aPod)}
		show := reader(caches, true)
		passed := count.Take(caches.world)
		show.took(passed)
		if v := show.reading(t.Context()); v.Snapshot != passed || len(v.Pods) != 1 {
			t.Errorf("counted again; %d pods", len(v.Pods))
		}
		caches.set(func() { caches.world = worldAt("2") })
		time.Sleep(time.Second)
		if v := show.reading(t.Context()); v.Snapshot == passed || v.Snapshot.Observed.Pods != "2" {
			t.Error("what a pass found earlier stands for what is so now")
		}
		if show.view().Snapshot != passed {
			t.Error("the metrics have what no pass has found")
		}
		world := worldAt("2")
		world.DRA = &count.DRA{State: count.DRASyncing}
		caches.set(func() { caches.world = world })
		time.Sleep(time.Second)
		if v := show.reading(t.Context()); v.Snapshot.DRA == nil {
			t.Error("that there is DRA goes unnoticed")
		}
		world.DRA = &count.DRA{State: count.DRAForbidden}
		caches.set(func() { caches.world = world })
		time.Sleep(time.Second)
		if v := show.reading(t.Context()); v.Snapshot.DRA.State != count.DRAForbidden {
			t.Error("a change of DRA's state goes unnoticed")
		}
	})
}

// TestIncompleteCachesAreNotShown: part of a cluster is worse than nothing.
func TestIncompleteCachesAreNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caches := &somewhere{world: worldAt("1", aPod), lacking: map[string]error{"pods": errors.New("pods: x"), "nodes": errors.New("nodes: y"), "ok": nil}}
		show := reader(caches, false)
		if v := show.reading(t.Context()); v.Snapshot != nil || strings.Join(v.Missing, "; ") != "nodes: y; pods: x" {
			t.Errorf("%v, missing %q", v.Snapshot, v.Missing)
		}
		caches.set(func() { caches.lacking = nil })
		before := show.reading(t.Context()).Snapshot
		if before == nil {
			t.Fatal("nothing though all is there")
		}
		// Caches that never stand still: what was known is better than nothing.
		caches.set(func() { caches.fail = errors.New("moving") })
		time.Sleep(time.Minute)
		if v := show.reading(t.Context()); v.Snapshot != before {
			t.Error("what was known is forgotten")
		}
	})
}

// TestHistoryGoesOnWithoutReaders, on a replica that takes no passes.
func TestHistoryGoesOnWithoutReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caches := &somewhere{world: worldAt("1", aPod)}
		show := reader(caches, false)
		var leading atomic.Bool
		show.leading = leading.Load
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); show.remember(ctx) }()
		time.Sleep(standbyEvery + time.Second)
		caches.set(func() { caches.world = worldAt("2", aPod, aPod) })
		time.Sleep(10 * standbyEvery)
		if got := show.history.Of(count.NVIDIA); len(got) != 2 || got[1].Requested != 4 {
			t.Errorf("%+v", got)
		}
		reads := caches.reads.Load()
		leading.Store(true)
		time.Sleep(10 * standbyEvery)
		if caches.reads.Load() != reads {
			t.Error("a leader looks beside its passes")
		}
		cancel()
		<-ended
	})
}

// TestThePageIsOnByDefault, with the API, and offers to log out where tokens are asked
// for.
func TestThePageIsOnByDefault(t *testing.T) {
	o := DefaultOptions()
	show := reader(&somewhere{}, true)
	handlers, layout := show.handlers(o)
	for _, path := range []string{"/{$}", "/nodes", "/node", "/pending", "/fit", "/style.css", "/page.js", "/field.js", "/press.js", "/api/v1/snapshot", "/api/v1/nodes", "/api/v1/fit", "/api/v1/openapi.json"} {
		if handlers[path] == nil {
			t.Errorf("nothing is at %s", path)
		}
	}
	if layout.Session != "" {
		t.Errorf("on loopback nobody logs in, and so out: %q", layout.Session)
	}
	o.HTTPAddress = ":8443"
	if _, layout = show.handlers(o); layout.Session != serve.SessionCookie {
		t.Errorf("where tokens are asked for: %q", layout.Session)
	}
}
