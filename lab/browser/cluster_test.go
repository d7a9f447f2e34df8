package browser

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

// makes of nodes, as many of a hundred as share says.
var makes = []struct {
	model         string
	gpus          int64
	share, filled int // percent
}{
	{"NVIDIA-H100-80GB-HBM3", 8, 40, 85}, {"NVIDIA-A100-SXM4-40GB", 8, 25, 70}, {"NVIDIA-L40S", 4, 15, 55}, {"Tesla-T4", 2, 20, 35},
}

var namespaces = []string{
	"research-vision", "research-language", "inference-prod", "inference-staging", "batch", "notebooks", "ml-platform", "robotics", "speech", "ads-ranking", "search",
}

// synthetic is a cluster of so many nodes with pods on them and others that wait. It
// follows from its size alone.
func synthetic(nodes int) count.World {
	r := rand.New(rand.NewPCG(uint64(nodes), 7))
	w := count.World{NodesKnown: true, Observed: count.Observed{Pods: "48211", Nodes: "48190"}}
	for i := range nodes {
		m := makes[len(makes)-1]
		for at, left := 0, r.IntN(100); at < len(makes); at++ {
			if left -= makes[at].share; left < 0 {
				m = makes[at]
				break
			}
		}
		n := &count.Node{
			Name:     fmt.Sprintf("gpu-node-%04d", i),
			Capacity: count.Amounts{{Resource: count.NVIDIA, Value: m.gpus}}, Allocatable: count.Amounts{{Resource: count.NVIDIA, Value: m.gpus}},
			Labels: []count.Label{{Key: "nvidia.com/gpu.product", Value: m.model}},
		}
		switch r.IntN(40) {
		case 0, 1:
			n.States = []count.State{count.SchedulingDisabled}
		case 2:
			n.States = []count.State{count.NotReady}
		case 3:
			n.States = []count.State{count.Tainted}
		case 4:
			n.Allocatable = count.Amounts{{Resource: count.NVIDIA, Value: m.gpus - 1}}
		}
		w.Nodes = append(w.Nodes, n)
		for left := m.gpus; left > 0; {
			size := min(left, []int64{1, 1, 1, 2, 4, 8}[r.IntN(6)])
			if left -= size; r.IntN(100) < m.filled {
				w.Pods = append(w.Pods, gpuPod(namespaces[min(r.IntN(len(namespaces)), r.IntN(len(namespaces)))], fmt.Sprintf("train-%d", len(w.Pods)), n.Name, size))
			}
		}
	}
	for i := range max(3, nodes/8) {
		p := gpuPod(namespaces[r.IntN(len(namespaces))], fmt.Sprintf("waiting-%d", i), "", []int64{1, 2, 4, 8, 16}[r.IntN(5)])
		p.Wait, p.Priority = count.Waits[r.IntN(len(count.Waits))], int32(r.IntN(3)*1000)
		for range r.IntN(3) { // one model, two, or any
			if p.More == nil {
				p.More = &count.PodMore{}
			}
			p.More.Models = append(p.More.Models, count.Label{Key: "nvidia.com/gpu.product", Value: makes[r.IntN(len(makes))].model})
		}
		w.Pods = append(w.Pods, p)
	}
	return w
}

func gpuPod(namespace, name, node string, gpus int64) *count.Pod {
	return &count.Pod{Key: namespace + "/" + name, Node: node, Requests: count.Amounts{{Resource: count.NVIDIA, Value: gpus}}}
}

// cluster is what is shown. It can be changed while somebody looks.
type cluster struct {
	mu      sync.Mutex
	view    api.View
	history api.History
}

func show(w count.World) *cluster {
	c := &cluster{}
	c.change(w)
	return c
}

func (c *cluster) change(w count.World) {
	snapshot := count.Take(w)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.view = api.View{Snapshot: snapshot, Pods: w.Pods, History: &c.history}
	c.history.Add(time.Now(), snapshot)
}

func (c *cluster) alter(change func(*api.View)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.view)
}

func (c *cluster) source(context.Context) api.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view
}

func (c *cluster) snapshot() *count.Snapshot { return c.source(context.Background()).Snapshot }

// serve serves the page and the API until the test ends, and returns where.
func (c *cluster) serve(t *testing.T, o serve.Options) (origin string) {
	t.Helper()
	o.Address = "127.0.0.1:0"
	layout := page.Layout{}
	if o.Auth != nil {
		layout.Session = serve.SessionCookie
	}
	o.Handlers = map[string]http.Handler{}
	maps.Copy(o.Handlers, page.Handlers(layout, c.source))
	maps.Copy(o.Handlers, api.Handlers(c.source))
	server, err := serve.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return server.URL()
}
