package page_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

func gpus(n int64) count.Amounts { return count.Amounts{{Resource: count.NVIDIA, Value: n}} }

// cluster has so many nodes of 8, each with a pod of 3, and as many pods that wait.
func cluster(nodes int) count.World {
	w := count.World{NodesKnown: true, Observed: count.Observed{Pods: "10", Nodes: "9"}}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		w.Nodes = append(w.Nodes, &count.Node{
			Name: name, Capacity: gpus(8), Allocatable: gpus(8), Labels: []count.Label{{Key: "nvidia.com/gpu.product", Value: fmt.Sprintf("model-%d", i%3)}},
		})
		w.Pods = append(w.Pods,
			&count.Pod{Key: fmt.Sprintf("team-%d/holds-%05d", i%20, i), Node: name, Requests: gpus(3)},
			&count.Pod{Key: fmt.Sprintf("team-%d/waits-%05d", i%20, i), Requests: gpus(9), Wait: count.Waits[i%4]})
	}
	return w
}

func viewOf(w count.World) api.View {
	snap := count.Take(w)
	history := &api.History{}
	history.Add(time.Now().Add(-time.Hour), count.Take(count.World{NodesKnown: true}))
	history.Add(time.Now().Add(-time.Minute), snap)
	return api.View{Snapshot: snap, Pods: w.Pods, History: history}
}

// visit asks for a page and returns the answer and its body.
func visit(t *testing.T, layout page.Layout, v api.View, target string, cookies ...*http.Cookie) (*httptest.ResponseRecorder, string) {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, handler := range page.Handlers(layout, func(context.Context) api.View { return v }) {
		mux.Handle("GET "+pattern, handler)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w, w.Body.String()
}

// hostile is a name as only somebody who means harm would give one. Labels cannot have
// all of it; what a DRA driver says of its devices can.
const hostile = `"><script>alert(1)</script><b title='x'>&amp;{{.}}`

func wants(models ...string) *count.PodMore {
	more := &count.PodMore{}
	for _, model := range models {
		more.Models = append(more.Models, count.Label{Key: "nvidia.com/gpu.product", Value: model})
	}
	return more
}

// worlds has of everything that pages have to show.
func worlds() map[string]api.View {
	full := cluster(5)
	full.Nodes[1].States = []count.State{count.NotReady, count.SchedulingDisabled}
	full.Nodes[2].Allocatable = gpus(2) // overcommitted
	full.Nodes = append(full.Nodes, &count.Node{Name: hostile, Capacity: gpus(1), Labels: []count.Label{{Key: "nvidia.com/gpu.product", Value: hostile}}})
	amd := count.Amounts{{Resource: "amd.com/gpu", Value: 4}}
	full.Nodes = append(full.Nodes, &count.Node{Name: "two", Capacity: append(slices.Clone(amd), gpus(8)...), Allocatable: amd})
	full.Pods = append(full.Pods,
		&count.Pod{Key: hostile + "/" + hostile, Node: hostile, Requests: gpus(1), Deleting: true},
		&count.Pod{Key: hostile + "/w" + hostile, Requests: gpus(1), Wait: count.Untried, More: wants(hostile)},
		&count.Pod{Key: "a/absent", Requests: gpus(4), Wait: count.Unschedulable, More: wants("model-x")},
		&count.Pod{Key: "a/either", Requests: gpus(5), Wait: count.Unschedulable, More: wants("model-0", "model-1")},
		&count.Pod{Key: "a/orphan", Node: "gone", Requests: gpus(2), More: &count.PodMore{Claim: &count.PodClaim{Name: "c"}}})
	full.DRA = &count.DRA{State: count.DRAForbidden, Reason: hostile}
	stale := viewOf(full)
	stale.Stale = &api.Stale{Since: time.Now().Add(-200 * time.Second), Reasons: []string{hostile, "another"}}
	blind := viewOf(count.World{Pods: full.Pods})
	dra := viewOf(full)
	snap := *dra.Snapshot
	snap.DRA = &count.DRAStatus{State: count.DRASynced, Classes: []count.ClassIssue{{}}, Pools: []count.PoolIssue{{}, {}}}
	snap.Rows = slices.Clone(snap.Rows)
	snap.Rows[0].Source, snap.Rows[0].Claimed, snap.Rows[0].Blocked, snap.Rows[0].Replicas = count.DynamicResources, 1, 1, 4
	dra.Snapshot = &snap
	return map[string]api.View{
		"full": viewOf(full), "stale": stale, "without nodes": blind, "empty": viewOf(count.World{NodesKnown: true}), "dra": dra,
		"not complete": {Missing: []string{hostile}}, "without history": {Snapshot: viewOf(full).Snapshot},
	}
}

var paths = []string{
	"/", "/?resource=amd.com/gpu", "/?resource=none", "/nodes", "/nodes?resource=amd.com%2Fgpu&sort=-free&state=Free&contains=o", "/nodes?model=" + escaped,
	"/node?name=node-00001", "/node?name=two", "/node?name=gone", "/node?name=" + escaped, "/node", "/pending", "/pending?namespace=team-1&reason=gated", "/pending?namespace=" + escaped,
	"/fit", "/fit?gpus=4&pods=3&model=model-1", "/fit?resource=" + escaped, "/nodes?sort=nothing", "/fit?x=1", "/pending?page=999",
}

const escaped = `%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E%3Cb+title%3D%27x%27%3E%26amp%3B%7B%7B.%7D%7D`

var (
	tags      = regexp.MustCompile(`<[^>]*>`)
	addresses = regexp.MustCompile(` (?:href|src|action)="([^"]*)"`)
	inline    = regexp.MustCompile(`(?i)<[^>]* (?:style|on[a-z]+)=|<style|<script[^>]*>[^<]|javascript:`)
)

// TestPagesAreWholeAndHarmless, whatever there is to show: each has a heading and its
// policy, no address that is not relative, nothing that the policy forbids, and of what
// objects are called no part that a browser takes for a tag.
func TestPagesAreWholeAndHarmless(t *testing.T) {
	for name, v := range worlds() {
		for _, path := range paths {
			res, body := visit(t, page.Layout{}, v, path)
			what := fmt.Sprintf("%s, %s", name, path)
			if res.Code == http.StatusInternalServerError {
				t.Errorf("%s: %s", what, body)
				continue
			}
			if !strings.HasSuffix(body, "</html>") || strings.Count(body, "<h1>") != 1 {
				t.Errorf("%s is not whole", what)
			}
			if got := res.Header().Get("Content-Security-Policy"); got != page.Policy || res.Header().Get("Content-Type") != "text/html; charset=utf-8" {
				t.Errorf("%s: policy %q, type %q", what, got, res.Header().Get("Content-Type"))
			}
			for _, m := range addresses.FindAllStringSubmatch(body, -1) {
				if !strings.HasPrefix(m[1], "./") && m[1] != "#main" {
					t.Errorf("%s: address %q", what, m[1])
				}
			}
			if m := inline.FindString(body); m != "" {
				t.Errorf("%s: the policy forbids %q", what, m)
			}
			if strings.Contains(body, "<b title") || strings.Contains(body, "<script>") {
				t.Errorf("%s: a name has become a tag", what)
			}
			ids := map[string]bool{}
			for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(body, -1) {
				if ids[m[1]] {
					t.Errorf("%s: two elements are %q", what, m[1])
				}
				ids[m[1]] = true
			}
		}
	}
}

// text is what a page says, without tags.
func text(body string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
}

// TestWhatPagesSay, one line for each thing that must be there.
func TestWhatPagesSay(t *testing.T) {
	all := worlds()
	for _, tc := range []struct {
		world, path string
		status      int
		want        []string
	}{
		{"full", "/", 200, []string{"Allocatable 34 of 49, the rest unhealthy", "Requested 16 as", "Usable free 15 of 20 free", "Pending 55 asked for by 8 pods", "Overcommitted 2 requested", "Orphaned 2 by",
			"fit nowhere 4 27", "Of what is pending, for 45 any model will do, for 5 any of several will do, for 4 only a model will do that no node has.", "amd.com/gpu nvidia.com/gpu", "Dynamic resource allocation is forbidden: " + hostile + ".", "pods@10 nodes@9", "now 16, at most 16"}},
		{"dra", "/", 200, []string{"1 device class cannot be counted in full", "2 pools with devices in no number"}},
		{"without nodes", "/", 200, []string{"--watch-nodes=false", "Requested 18"}},
		{"empty", "/", 200, []string{"No node has nvidia.com/gpu.", "No pod waits for nvidia.com/gpu."}},
		{"full", "/nodes", 200, []string{"7 nodes with nvidia.com/gpu", "not ready cordoned", "1 to 7 of 7"}},
		{"full", "/nodes?state=Overcommitted", 200, []string{"2 nodes with nvidia.com/gpu, of those asked for"}},
		{"full", "/node?name=node-00001", 200, []string{"Node node-00001", "not ready cordoned", "team-1 holds-00001 3 nvidia.com/gpu 0 bound"}},
		{"full", "/node?name=two", 200, []string{"amd.com/gpu", "nvidia.com/gpu", "None."}},
		{"full", "/node?name=gone", 200, []string{"No such node is there", "orphan 2 nvidia.com/gpu by claim"}},
		{"full", "/node?name=" + escaped, 200, []string{hostile, "being deleted"}},
		{"dra", "/node?name=" + escaped, 200, []string{"DRA", "1 are charged for pods", "1 cannot be had", "shared × 4"}},
		{"full", "/node?name=nobody", 404, []string{"There is no node of this name"}},
		{"full", "/pending", 200, []string{"8 pods without a node", "waits-00000 9 nvidia.com/gpu any fit nowhere at most 5 on one node", "a either 5 nvidia.com/gpu model-0, model-1 fit nowhere there is room", "a absent 4 nvidia.com/gpu model-x fit nowhere no node has the model", hostile + " not tried yet nothing is usable"}},
		{"full", "/pending?reason=gated", 200, []string{"1 pod without a node, of those asked for"}},
		{"full", "/fit?gpus=5&pods=3", 200, []string{"Yes. 3 pods of 5 nvidia.com/gpu could start now; 3 are asked for.", "node-00000 model-0 1", "free, but not ready and cordoned 1 5", "5 free devices would be left over"}},
		{"full", "/fit?gpus=5&pods=4&model=model-0", 200, []string{"No. 2 pods of 5 nvidia.com/gpu on model-0", "another model 5"}},
		{"without nodes", "/fit", 501, []string{"--watch-nodes=false"}},
		{"full", "/fit?gpus=0", 400, []string{`parameter "gpus" is 0`}},
		{"full", "/nodes?named=a", 400, []string{`there is no parameter "named"`}},
		{"full", "/pending?page=999", 200, []string{"1 to 8 of 8"}}, // there were more a moment ago
		{"not complete", "/", 503, []string{"The caches are not complete yet.", hostile}},
		{"stale", "/", 200, []string{"Stale.", ", 3 min old", hostile + "; another."}},
	} {
		res, body := visit(t, page.Layout{}, all[tc.world], tc.path)
		if res.Code != tc.status {
			t.Errorf("%s, %s: %d, want %d", tc.world, tc.path, res.Code, tc.status)
		}
		if again := res.Header().Get("Retry-After"); (again != "") != (tc.status == http.StatusServiceUnavailable) {
			t.Errorf("%s, %s: to be asked again after %q", tc.world, tc.path, again)
		}
		for _, want := range tc.want {
			if got := text(body); !strings.Contains(got, want) {
				t.Errorf("%s, %s does not say %q:\n%s", tc.world, tc.path, want, got)
			}
		}
	}
	if _, body := visit(t, page.Layout{}, all["full"], "/"); strings.Contains(body, `class="alarm"`) {
		t.Error("fresh data is called stale")
	}
}

// The most that the first view of a cluster takes, however many nodes it has, before
// compression. The cells of at most 6,000 nodes are asked for after that, a thousand at
// a time.
const (
	maxFirstView = 128 << 10
	maxCells     = 512 << 10
)

// TestTheFirstViewIsBounded: with 65,000 nodes each page is as large as with 1,000.
func TestTheFirstViewIsBounded(t *testing.T) {
	v := viewOf(cluster(65_000))
	files := 0
	for _, file := range []string{"/style.css", "/page.js", "/field.js", "/press.js", "/icon.svg"} {
		res, body := visit(t, page.Layout{}, v, file)
		if res.Code != http.StatusOK || res.Header().Get("ETag") == "" {
			t.Errorf("%s: %d, tag %q", file, res.Code, res.Header().Get("ETag"))
		}
		files += len(body)
	}
	for _, path := range []string{"/", "/nodes", "/nodes?sort=-free&page=400", "/pending", "/fit?gpus=1&pods=10000", "/node?name=node-00001"} {
		res, body := visit(t, page.Layout{}, v, path)
		if res.Code != http.StatusOK || len(body)+files > maxFirstView {
			t.Errorf("%s: %d, %d bytes and %d of files, want %d at most", path, res.Code, len(body), files, maxFirstView)
		}
		t.Logf("%s: %d bytes, and %d of files", path, len(body), files)
	}
	handler := api.Handlers(func(context.Context) api.View { return v })[api.Prefix+"nodes"]
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, api.Prefix+"nodes?holders=true&limit=1000", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	handler.ServeHTTP(w, r)
	small := w.Body.Len()
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil || len(body) > maxCells {
		t.Errorf("%v; %d bytes for a thousand nodes, want %d at most", err, len(body), maxCells)
	}
	t.Logf("a thousand nodes: %d bytes, %d compressed", len(body), small)
	if !json.Valid(body) {
		t.Error("that is no JSON")
	}
}

// TestAPageThatIsStillSo is not sent again.
func TestAPageThatIsStillSo(t *testing.T) {
	v := viewOf(cluster(5))
	for _, path := range []string{"/nodes", "/pending", "/fit", "/node?name=node-00001"} {
		a, _ := visit(t, page.Layout{}, v, path)
		b, _ := visit(t, page.Layout{}, v, path)
		if a.Header().Get("ETag") == "" || a.Header().Get("ETag") != b.Header().Get("ETag") {
			t.Errorf("%s: %s and %s", path, a.Header().Get("ETag"), b.Header().Get("ETag"))
		}
	}
}
