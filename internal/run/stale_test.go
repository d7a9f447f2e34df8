package run

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

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
