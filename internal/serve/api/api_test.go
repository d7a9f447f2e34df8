package api_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// TestNodesAreTheRows of the snapshot, all of them, as they are published.
func TestNodesAreTheRows(t *testing.T) {
	v := aView()
	got := get[struct {
		SchemaVersion string      `json:"schemaVersion"`
		Rows          []count.Row `json:"rows"`
	}](t, v, "nodes")
	if diff := gocmp.Diff(v.Snapshot.Rows, got.Rows); diff != "" || got.SchemaVersion != "1" {
		t.Errorf("version %q, rows differ:\n%s", got.SchemaVersion, diff)
	}
}

// TestSelections give those rows that are asked for.
func TestSelections(t *testing.T) {
	for query, want := range map[string]string{
		"node=a": "a/nvidia.com/gpu", "node=": "a/nvidia.com/gpu b/nvidia.com/gpu c/nvidia.com/gpu d/amd.com/gpu", "node=nobody": "",
		"resource=amd.com/gpu": "d/amd.com/gpu", "model=A100": "c/nvidia.com/gpu", "contains=b": "b/nvidia.com/gpu",
		"state=NotReady": "d/amd.com/gpu", "state=Tainted": "d/amd.com/gpu", "state=SchedulingDisabled": "b/nvidia.com/gpu",
		"state=Usable": "a/nvidia.com/gpu c/nvidia.com/gpu", "state=Free": "a/nvidia.com/gpu", "state=Full": "c/nvidia.com/gpu",
		"state=Overcommitted": "c/nvidia.com/gpu", "model=H100&state=Usable": "a/nvidia.com/gpu",
	} {
		if got := strings.Join(get[nodesDocument](t, aView(), "nodes?"+query).names(), " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestHoldersAreGivenOnRequest.
func TestHoldersAreGivenOnRequest(t *testing.T) {
	want := []count.Holder{{Namespace: "x", Devices: 2}, {Namespace: "y", Devices: 4}}
	if got := get[nodesDocument](t, aView(), "nodes?node=a&holders=true").Rows[0].Holders; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := get[nodesDocument](t, aView(), "nodes?node=a").Rows[0].Holders; got != nil {
		t.Errorf("without being asked: %+v", got)
	}
}

// TestPaging gives each row once, also when rows come and go meanwhile.
func TestPaging(t *testing.T) {
	world := func(skip string) (w count.World) {
		w.NodesKnown = true
		for i := range 50 {
			if name := fmt.Sprintf("n%02d", i); name != skip {
				w.Nodes = append(w.Nodes, &count.Node{Name: name, Capacity: gpus(1)})
			}
			w.Pods = append(w.Pods, &count.Pod{Key: fmt.Sprintf("ns/%02d", i), Requests: gpus(1), Wait: count.Untried})
		}
		return w
	}
	full, less := world(""), world("n13") // n13 is the last row of the second part
	for limit := 1; limit <= 60; limit += 7 {
		var seen, keys []string
		path := fmt.Sprintf("nodes?limit=%d", limit)
		for part := range 100 {
			w := full
			if part >= 2 {
				w = less
			}
			d := get[nodesDocument](t, api.View{Snapshot: count.Take(w)}, path)
			seen = append(seen, d.names()...)
			if d.Continue == "" {
				break
			}
			if len(d.Rows) != limit {
				t.Errorf("limit %d: a part of %d", limit, len(d.Rows))
			}
			path = fmt.Sprintf("nodes?limit=%d&continue=%s", limit, url.QueryEscape(d.Continue))
		}
		if !slices.IsSorted(seen) || len(slices.Compact(seen)) != len(seen) || len(seen) < 49 {
			t.Errorf("limit %d: %d rows: %q", limit, len(seen), seen)
		}
		for path := fmt.Sprintf("pods?limit=%d", limit); path != "" && len(keys) < 100; {
			d := get[podsDocument](t, api.View{Snapshot: count.Take(full), Pods: full.Pods}, path)
			for _, p := range d.Pods {
				keys = append(keys, p.Name)
			}
			if path = ""; d.Continue != "" {
				path = fmt.Sprintf("pods?limit=%d&continue=%s", limit, d.Continue)
			}
		}
		if len(keys) != 50 || !slices.IsSorted(keys) {
			t.Errorf("limit %d: pods %q", limit, keys)
		}
	}
}

type podsDocument struct {
	Continue string
	Pods     []struct {
		Namespace, Name, Node, Waits string
		Requests                     map[string]int64
		Priority                     int
		Deleting                     bool
	}
}

// TestPods are those that count (R1, R2, P1), by where they are and why they wait.
func TestPods(t *testing.T) {
	for query, want := range map[string]string{
		"":     "x/1 x/2 x/leaving x/w y/1 z/w", // sorted, and without x/done
		"node": "x/1 x/2 x/leaving x/w y/1 z/w", "node=a": "x/1 y/1", "namespace=y": "y/1", "pending=true": "x/w z/w", "pending=false": "x/1 x/2 x/leaving x/w y/1 z/w",
		"reason=gated": "x/w", "reason=unschedulable": "z/w", "reason=nominated": "", "node=a&pending=true": "",
	} {
		var got []string
		for _, p := range get[podsDocument](t, aView(), "pods?"+query).Pods {
			got = append(got, p.Namespace+"/"+p.Name)
			if (p.Name == "leaving") != p.Deleting || (p.Node == "") != (p.Waits != "") || len(p.Requests) != 1 {
				t.Errorf("%+v", p)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}

// TestFit is what the snapshot says, of NVIDIA's resource unless told otherwise.
func TestFit(t *testing.T) {
	v := aView()
	type document struct {
		Resource, Model     string
		GPUs, Pods          int64
		Fits                bool
		Placeable, Stranded int64
		Places              []count.Place
		Obstacles           []count.Obstacle
	}
	for query, ask := range map[string]count.Ask{
		"": {Resource: count.NVIDIA, Devices: 1, Pods: 1}, "gpus=2&pods=2": {Resource: count.NVIDIA, Devices: 2, Pods: 2},
		"gpus=1&pods=1&model=H100": {Resource: count.NVIDIA, Model: "H100", Devices: 1, Pods: 1},
		"resource=amd.com/gpu":     {Resource: "amd.com/gpu", Devices: 1, Pods: 1}, "resource=none": {Resource: "none", Devices: 1, Pods: 1},
	} {
		got, p := get[document](t, v, "fit?"+query), v.Snapshot.Place(ask)
		if p.Places == nil {
			p.Places = []count.Place{}
		}
		if p.Obstacles == nil {
			p.Obstacles = []count.Obstacle{}
		}
		want := document{ask.Resource, ask.Model, ask.Devices, ask.Pods, p.Placeable >= ask.Pods, p.Placeable, p.Stranded, p.Places, p.Obstacles}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", query, diff)
		}
	}
	v.Snapshot = count.Take(count.World{Pods: v.Pods})
	if got := problem(t, v, "fit", http.StatusNotImplemented); !strings.Contains(got, "--watch-nodes=false") {
		t.Errorf("without nodes it says %q", got)
	}
}

// TestMistakesAreNamed, whichever they are, and before anything is answered.
func TestMistakesAreNamed(t *testing.T) {
	for path, want := range map[string]string{
		"snapshot?pretty=1":                "there is no parameter \"pretty\" here; there are none",
		"nodes?models=H100":                "there is no parameter \"models\" here; there are node, resource, model, ",
		"nodes?node=a&node=b":              "parameter \"node\" is given 2 times",
		"nodes?state=ready":                "parameter \"state\" is \"ready\"; want one of NotReady, ",
		"nodes?limit=0":                    "parameter \"limit\" is 0; want a number from 1 to 1000000",
		"nodes?limit=many":                 "parameter \"limit\" is \"many\"; want a number",
		"nodes?limit=99999999999999999999": "want a number from 1 to 1000000",
		"nodes?continue=%25":               "parameter \"continue\" is \"%\"; want what an answer said",
		"nodes?holders=yes":                "want one of true, false",
		"nodes?a;b":                        "the query cannot be read",
		"pods?reason=bored":                "want one of unschedulable, untried, gated, nominated",
		"fit?gpus=-1":                      "parameter \"gpus\" is -1; want a number from 1 to ",
		"fit?pods=10001":                   "want a number from 1 to 10000",
		"fit?node=a":                       "there is no parameter \"node\"",
		"history?since=1":                  "there is no parameter \"since\"",
		"openapi.json?x=1":                 "there is no parameter \"x\"",
	} {
		if got := problem(t, aView(), path, http.StatusBadRequest); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := problem(t, aView(), "nowhere", http.StatusNotFound); !strings.Contains(got, "/api/v1/nowhere") || !strings.Contains(got, "openapi.json") {
		t.Errorf("a path that there is not: %q", got)
	}
}

// TestIncompleteCachesAreNoAnswer, and the reasons are in it.
func TestIncompleteCachesAreNoAnswer(t *testing.T) {
	for _, path := range []string{"snapshot", "nodes", "pods", "fit", "history"} {
		v := api.View{Missing: []string{"list pods: forbidden", "list nodes: forbidden"}}
		if got := problem(t, v, path, http.StatusServiceUnavailable); got != "the caches are not complete; list pods: forbidden; list nodes: forbidden" {
			t.Errorf("%s: %q", path, got)
		}
		if got := ask(t, v, api.Prefix+path).header.Get("Retry-After"); got != "1" {
			t.Errorf("%s: Retry-After %q", path, got)
		}
	}
}

// TestStaleIsInEveryDocument, and only while it is so.
func TestStaleIsInEveryDocument(t *testing.T) {
	for _, path := range []string{"snapshot", "nodes", "pods", "fit", "history"} {
		v := aView()
		if got := get[map[string]any](t, v, path); got["stale"] != nil || got["schemaVersion"] != "1" {
			t.Errorf("%s: version %v, stale %v", path, got["schemaVersion"], got["stale"])
		}
		v.Stale = &api.Stale{Since: time.Unix(1_700_000_000, 0).UTC(), Reasons: []string{"why"}}
		want := map[string]any{"since": "2023-11-14T22:13:20Z", "reasons": []any{"why"}}
		if diff := gocmp.Diff(want, get[map[string]any](t, v, path)["stale"]); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestEqualContentHasAnEqualTag, whether it is compressed or not, and whoever has it is
// not sent it again.
func TestEqualContentHasAnEqualTag(t *testing.T) {
	for _, path := range []string{"snapshot", "nodes", "pods", "fit", "history", "openapi.json"} {
		path = api.Prefix + path
		plain, again, small := ask(t, aView(), path), ask(t, aView(), path), ask(t, aView(), path, "Accept-Encoding", "br, gzip;q=0.5")
		tag := plain.header.Get("ETag")
		if !strings.HasPrefix(tag, `W/"`) || again.header.Get("ETag") != tag || small.header.Get("ETag") != tag {
			t.Errorf("%s: tags %s, %s, %s", path, tag, again.header.Get("ETag"), small.header.Get("ETag"))
		}
		if got := plain.header.Get("Cache-Control"); got != "private, no-cache" {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
		body, compressed := plain.body, small.body
		if len(body) > 1<<10 {
			z, err := gzip.NewReader(bytes.NewReader(compressed))
			if err != nil || small.header.Get("Content-Encoding") != "gzip" {
				t.Fatalf("%s: %v, Content-Encoding %q", path, err, small.header.Get("Content-Encoding"))
			}
			if compressed, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(body, compressed) {
			t.Errorf("%s: compressed it is another", path)
		}
		for _, header := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag, "*"} {
			if res := ask(t, aView(), path, "If-None-Match", header); res.status != http.StatusNotModified || len(res.body) > 0 || res.header.Get("ETag") != tag {
				t.Errorf("%s, If-None-Match %s: %d", path, header, res.status)
			}
		}
		if res := ask(t, aView(), path, "If-None-Match", `"x"`); res.status != http.StatusOK {
			t.Errorf("%s: %d to somebody who has another", path, res.status)
		}
		for _, none := range []string{"", "br", "gzip;q=0", "gzip; q=0.0", "identity"} {
			if res := ask(t, aView(), path, "Accept-Encoding", none); res.header.Get("Content-Encoding") != "" {
				t.Errorf("%s: compressed for %q", path, none)
			}
		}
	}
	changed := aView()
	changed.Snapshot = count.Take(count.World{NodesKnown: true})
	if a, b := ask(t, aView(), api.Prefix+"nodes"), ask(t, changed, api.Prefix+"nodes"); a.header.Get("ETag") == b.header.Get("ETag") {
		t.Error("other rows have the same tag")
	}
}

// TestListsAreNeverNull, though there is nothing in them.
func TestListsAreNeverNull(t *testing.T) {
	empty := api.View{Snapshot: count.Take(count.World{NodesKnown: true}), History: &api.History{}}
	waiting := []*count.Pod{{Key: "a/b", Requests: gpus(1), Wait: count.Gated}}
	only := api.View{Snapshot: count.Take(count.World{NodesKnown: true, Pods: waiting}), Pods: waiting}
	for _, v := range []api.View{empty, only, aView()} {
		for _, path := range []string{"snapshot", "nodes", "nodes?holders=true", "pods", "fit", "history"} {
			if body := ask(t, v, api.Prefix+path).body; bytes.Contains(body, []byte("null")) {
				t.Errorf("%s: %s", path, body)
			}
		}
	}
}
