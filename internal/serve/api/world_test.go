package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

func gpus(n int64) count.Amounts { return count.Amounts{{Resource: count.NVIDIA, Value: n}} }

func product(model string) []count.Label {
	return []count.Label{{Key: "nvidia.com/gpu.product", Value: model}}
}

func pod(key, node string, n int64) *count.Pod {
	return &count.Pod{Key: key, Node: node, Requests: gpus(n)}
}

// aView is of a small cluster that has one of most things.
func aView() api.View {
	amd := count.Amounts{{Resource: "amd.com/gpu", Value: 4}}
	waiting := func(key string, n int64, wait count.Wait) *count.Pod {
		return &count.Pod{Key: key, Requests: gpus(n), Wait: wait, Priority: 7}
	}
	w := count.World{
		NodesKnown: true, Observed: count.Observed{Pods: "10", Nodes: "9"},
		Nodes: []*count.Node{
			{Name: "a", Capacity: gpus(8), Allocatable: gpus(8), Labels: product("H100")},
			{Name: "b", Capacity: gpus(8), Allocatable: gpus(8), Labels: product("H100"), States: []count.State{count.SchedulingDisabled}},
			{Name: "c", Capacity: gpus(8), Allocatable: gpus(4), Labels: product("A100")},
			{Name: "d", Capacity: amd, Allocatable: amd, States: []count.State{count.NotReady, count.Tainted}},
		},
		Pods: []*count.Pod{
			pod("x/1", "a", 2), pod("y/1", "a", 4), pod("x/2", "c", 6), waiting("z/w", 8, count.Unschedulable), waiting("x/w", 1, count.Gated),
			{Key: "x/leaving", Node: "b", Requests: gpus(1), Deleting: true}, {Key: "x/done", Node: "b", Requests: gpus(1), Terminal: true},
		},
	}
	history := &api.History{}
	snap := count.Take(w)
	history.Add(time.Unix(1_700_000_000, 0), snap)
	return api.View{Snapshot: snap, Pods: w.Pods, History: history}
}

// reply is an answer whose body has been read.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request to the handlers over a view.
func ask(t *testing.T, v api.View, target string, headers ...string) reply {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, handler := range api.Handlers(func(context.Context) api.View { return v }) {
		mux.Handle("GET "+pattern, handler)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return reply{w.Code, w.Header(), w.Body.Bytes()}
}

// get decodes the answer to a request that succeeds.
func get[T any](t *testing.T, v api.View, path string) (document T) {
	t.Helper()
	res := ask(t, v, api.Prefix+path)
	if res.status != http.StatusOK || res.header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s: %d, %s", path, res.status, res.header.Get("Content-Type"))
	}
	if err := json.Unmarshal(res.body, &document); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return document
}

// problem decodes the answer to one that fails.
func problem(t *testing.T, v api.View, path string, want int) string {
	t.Helper()
	res := ask(t, v, api.Prefix+path)
	var p struct {
		Title, Detail string
		Status        int
	}
	if err := json.Unmarshal(res.body, &p); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if res.status != want || p.Status != want || p.Title != http.StatusText(want) || res.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: %d %s says %+v, want %d", path, res.status, res.header.Get("Content-Type"), p, want)
	}
	return p.Detail
}

type nodesDocument struct {
	SchemaVersion, Continue string
	Rows                    []struct {
		count.Row
		Holders []count.Holder
	}
}

// names are those of the rows, "a/nvidia.com/gpu".
func (d nodesDocument) names() (names []string) {
	for _, row := range d.Rows {
		names = append(names, fmt.Sprintf("%s/%s", row.Node, row.Resource))
	}
	return names
}
