package run

import (
	"context"
	"errors"
	"net/http"
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
		show.leading = func() bool { return true }
		time.Sleep(10 * standbyEvery)
		if caches.reads.Load() != reads {
			t.Error("a leader looks beside its passes")
		}
		cancel()
		<-ended
	})
}

// TestStaleness: a watch that is silent for longer than the alert allows, or that fails
// for longer than a restart takes; those of resources that are not counted do not
// matter.
func TestStaleness(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	fails := func(d time.Duration) map[string]failure { return map[string]failure{"pods": {ago(d), "why"}} }
	for name, tc := range map[string]struct {
		heard  map[string]time.Time
		fails  map[string]failure
		since  time.Duration // 0 for fresh
		reason string
	}{
		"fresh":                     {heard: map[string]time.Time{"pods": ago(time.Second), "nodes": ago(149 * time.Second)}},
		"nothing yet":               {},
		"silent":                    {map[string]time.Time{"pods": ago(time.Second), "nodes": ago(151 * time.Second)}, nil, 151 * time.Second, "watch of nodes: nothing is heard"},
		"both":                      {map[string]time.Time{"pods": ago(300 * time.Second), "nodes": ago(200 * time.Second)}, nil, 300 * time.Second, "watch of pods, nodes: nothing is heard"},
		"another is silent":         {heard: map[string]time.Time{"pods": ago(0), "configmaps": ago(time.Hour), "resourceslices": ago(time.Hour)}},
		"fails for a moment":        {heard: map[string]time.Time{"pods": ago(20 * time.Second)}, fails: fails(9 * time.Second)},
		"fails":                     {map[string]time.Time{"pods": ago(20 * time.Second)}, fails(10 * time.Second), 20 * time.Second, "watch of pods: why"},
		"fails, and never heard":    {nil, fails(time.Minute), time.Minute, "watch of pods: why"},
		"fails, and a list is read": {map[string]time.Time{"pods": ago(time.Second)}, fails(time.Minute), time.Minute, "watch of pods: why"},
	} {
		got := staleness(now, []string{"pods", "nodes"}, tc.heard, tc.fails)
		switch {
		case (got != nil) != (tc.since > 0):
			t.Errorf("%s: %+v", name, got)
		case got != nil && (!got.Since.Equal(ago(tc.since)) || strings.Join(got.Reasons, "; ") != tc.reason):
			t.Errorf("%s: since %v ago: %q", name, now.Sub(got.Since), got.Reasons)
		}
	}
}

// TestStaleIsOnlyWhatIsCounted: the watches of DRA matter while it is.
func TestStaleIsOnlyWhatIsCounted(t *testing.T) {
	show := newSurfaces()
	old := map[string]time.Time{"nodes": time.Now().Add(-time.Hour), "resourceslices": time.Now().Add(-2 * time.Hour)}
	for name, tc := range map[string]struct {
		snap *count.Snapshot
		want int
	}{
		"neither": {&count.Snapshot{}, 0}, "nodes": {&count.Snapshot{NodesKnown: true}, 1},
		"DRA is gone": {&count.Snapshot{DRA: &count.DRAStatus{State: count.DRAForbidden}}, 0},
		"DRA":         {&count.Snapshot{NodesKnown: true, DRA: &count.DRAStatus{State: count.DRASynced}}, 2},
	} {
		got := 0
		if stale := show.stale(tc.snap, old); stale != nil {
			got = strings.Count(stale.Reasons[0], ",") + 1
		}
		if got != tc.want {
			t.Errorf("%s: %d watches, want %d", name, got, tc.want)
		}
	}
}

type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// TestTrouble: a resource is in trouble from the first list or watch that fails until a
// watch is accepted, and why has no detail that changes from one attempt to the next.
func TestTrouble(t *testing.T) {
	trouble := newTrouble()
	var status int
	var err error
	transport := trouble.Wrap(answers(func(*http.Request) (*http.Response, error) {
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: status, Body: http.NoBody}, nil
	}))
	send := func(method, target string, code int, fail error) failure {
		status, err = code, fail
		r, _ := http.NewRequestWithContext(t.Context(), method, "https://server"+target, nil)
		if res, err := transport.RoundTrip(r); err == nil {
			res.Body.Close()
		}
		return trouble.failing()["pods"]
	}
	const list, watch = "/api/v1/pods?limit=500", "/api/v1/namespaces/x/pods?watch=true"
	if got := send("GET", list, 200, nil); got.why != "" {
		t.Errorf("a list: %+v", got)
	}
	first := send("GET", watch, 0, errors.New("read tcp 127.0.0.1:4711: reset"))
	if first.why != "the API server does not answer" {
		t.Errorf("no answer: %+v", first)
	}
	if got := send("GET", watch, 403, nil); got.why != "the API server says 403 Forbidden" || !got.since.Equal(first.since) {
		t.Errorf("another failure: %+v", got)
	}
	if got := send("GET", list, 200, nil); got.why == "" {
		t.Error("a list makes good")
	}
	if got := send("GET", watch, 200, nil); got.why != "" {
		t.Errorf("a watch does not: %+v", got)
	}
	if got := send("GET", watch, 0, context.Canceled); got.why != "" {
		t.Errorf("the end is taken for trouble: %+v", got)
	}
	if got := send("POST", list, 500, nil); got.why != "" {
		t.Errorf("a write is taken for a watch: %+v", got)
	}
}

// TestThePageIsOnByDefault, with the API, and offers to log out where tokens are asked
// for.
func TestThePageIsOnByDefault(t *testing.T) {
	o := DefaultOptions()
	show := reader(&somewhere{}, true)
	handlers, layout := show.handlers(o)
	for _, path := range []string{"/{$}", "/nodes", "/node", "/pending", "/fit", "/style.css", "/page.js", "/field.js", "/api/v1/snapshot", "/api/v1/nodes", "/api/v1/fit", "/api/v1/openapi.json"} {
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
