package load

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// openbTotals are the figures of the trace, counted by hand from its files.
var openbTotals = Totals{Requested: 4186, Allocatable: 6212, Free: 2026, Pending: 862, Naive: 7433}

func TestOpenBTrace(t *testing.T) {
	c, err := ReadOpenB(traceDir(t))
	if err != nil {
		t.Fatal(err)
	}
	checkOpenB(t, c)
}

func TestLikeOpenB(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { checkOpenB(t, LikeOpenB(seed)) })
	}
}

// checkOpenB checks everything that the trace and its likes have in common.
func checkOpenB(t *testing.T, c *Cluster) {
	t.Helper()
	if len(c.Nodes) != 1523 || len(c.Pods) != 8152 {
		t.Errorf("%d nodes and %d pods, want 1523 and 8152", len(c.Nodes), len(c.Pods))
	}
	type sum struct{ Pods, GPUs int64 }
	phases := map[corev1.PodPhase]sum{}
	for _, p := range c.Pods {
		s := phases[p.Phase]
		phases[p.Phase] = sum{s.Pods + 1, s.GPUs + p.GPUs}
	}
	want := map[corev1.PodPhase]sum{
		corev1.PodRunning: {5193, 4186}, corev1.PodFailed: {1870, 2151},
		corev1.PodPending: {897, 862}, corev1.PodSucceeded: {192, 234},
	}
	if diff := cmp.Diff(want, phases); diff != "" {
		t.Error(diff)
	}
	placement, err := Place(c)
	if err != nil {
		t.Fatal(err)
	}
	checkPlacement(t, c, placement)
	checkTotals(t, c, Expect(c, placement))
}

// checkPlacement adds up what every node holds, without Place's code.
func checkPlacement(t *testing.T, c *Cluster, placement map[string]string) {
	t.Helper()
	nodes := map[string]Node{}
	for _, n := range c.Nodes {
		nodes[n.Name] = n
	}
	type load struct{ cpu, memory, gpus, pods int64 }
	holds := map[string]load{}
	for _, p := range c.Pods {
		node, bound := placement[p.Name]
		if bound == (p.Phase == corev1.PodPending) {
			t.Errorf("%s is %s and bound=%t", p.Name, p.Phase, bound)
		}
		n, ok := nodes[node]
		if bound && (!ok || p.GPUs > n.GPUs || p.CPUMilli > n.CPUMilli || p.MemoryMiB > n.MemoryMiB) {
			t.Errorf("%s cannot run on node %q", p.Name, node)
		}
		if p.Phase == corev1.PodRunning {
			h := holds[node]
			holds[node] = load{h.cpu + p.CPUMilli, h.memory + p.MemoryMiB, h.gpus + p.GPUs, h.pods + 1}
		}
	}
	for name, h := range holds {
		n := nodes[name]
		if h.cpu > n.CPUMilli || h.memory > n.MemoryMiB || h.gpus > n.GPUs || h.pods > PodsPerNode {
			t.Errorf("node %+v holds %+v", n, h)
		}
	}
}

func checkTotals(t *testing.T, c *Cluster, got Totals) {
	t.Helper()
	var rows, sum int64
	for _, n := range c.Nodes {
		requested, ok := got.PerNode[n.Name]
		if ok != (n.GPUs > 0) {
			t.Errorf("node %s with %d GPUs has a row: %t", n.Name, n.GPUs, ok)
		}
		if ok {
			rows++
		}
		sum += requested
	}
	if rows != int64(len(got.PerNode)) || sum != got.Requested {
		t.Errorf("%d rows of %d are of nodes; they sum to %d of %d", rows, len(got.PerNode), sum, got.Requested)
	}
	got.PerNode = nil
	if diff := cmp.Diff(openbTotals, got); diff != "" {
		t.Error(diff)
	}
}

func TestLikeOpenBIsDecidedByTheSeed(t *testing.T) {
	if diff := cmp.Diff(LikeOpenB(3), LikeOpenB(3)); diff != "" {
		t.Error(diff)
	}
	a, b := LikeOpenB(3), LikeOpenB(4)
	if cmp.Equal(a.Nodes, b.Nodes) || cmp.Equal(a.Pods, b.Pods) {
		t.Error("another seed gives the same cluster")
	}
	first, err := Place(a)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Place(LikeOpenB(3))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	for i := 1; i < len(a.Pods); i++ {
		if a.Pods[i].Created < a.Pods[i-1].Created {
			t.Fatalf("%s is created before %s", a.Pods[i].Name, a.Pods[i-1].Name)
		}
	}
}

// pods makes pods named p0, p1 … of one GPU, or as changed by edit.
func pods(n int, edit func(i int, p *Pod)) []Pod {
	list := make([]Pod, n)
	for i := range list {
		list[i] = Pod{Name: fmt.Sprint("p", i), CPUMilli: 1000, MemoryMiB: 1024, GPUs: 1, Phase: corev1.PodRunning, Created: int64(i)}
		if edit != nil {
			edit(i, &list[i])
		}
	}
	return list
}

func TestPlace(t *testing.T) {
	nodes := []Node{
		{Name: "cpu", CPUMilli: 9000, MemoryMiB: 9 << 10},
		{Name: "small", CPUMilli: 8000, MemoryMiB: 8 << 10, GPUs: 2},
		{Name: "big", CPUMilli: 8000, MemoryMiB: 8 << 10, GPUs: 4},
	}
	for name, tc := range map[string]struct {
		pods []Pod
		want map[string]string
	}{
		"first fit by GPUs":        {pods(4, nil), map[string]string{"p0": "small", "p1": "small", "p2": "big", "p3": "big"}},
		"no GPU needs no GPU node": {pods(1, func(_ int, p *Pod) { p.GPUs = 0 }), map[string]string{"p0": "cpu"}},
		"by CPU":                   {pods(2, func(_ int, p *Pod) { p.CPUMilli = 5000 }), map[string]string{"p0": "small", "p1": "big"}},
		"by memory":                {pods(2, func(_ int, p *Pod) { p.MemoryMiB = 5 << 10 }), map[string]string{"p0": "small", "p1": "big"}},
		"exactly full":             {pods(2, func(_ int, p *Pod) { p.CPUMilli, p.MemoryMiB = 4000, 4<<10 }), map[string]string{"p0": "small", "p1": "small"}},
		"pending has no node": {pods(2, func(i int, p *Pod) {
			if i == 0 {
				p.Phase = corev1.PodPending
			}
		}), map[string]string{"p1": "small"}},
		"ended pods release": {pods(4, func(i int, p *Pod) {
			p.GPUs = 2
			p.Phase = []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded, corev1.PodRunning, corev1.PodRunning}[i]
		}), map[string]string{"p0": "small", "p1": "small", "p2": "small", "p3": "big"}},
		"arrival order, not file order": {pods(3, func(i int, p *Pod) { p.Created = int64(-i) }), map[string]string{"p2": "small", "p1": "small", "p0": "big"}},
		"same second keeps file order":  {pods(3, func(_ int, p *Pod) { p.Created = 0 }), map[string]string{"p0": "small", "p1": "small", "p2": "big"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Place(&Cluster{Nodes: nodes, Pods: tc.pods})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlaceBoundsPodsPerNode(t *testing.T) {
	nodes := []Node{{Name: "a"}, {Name: "b"}}
	list := pods(PodsPerNode+1, func(_ int, p *Pod) { p.CPUMilli, p.MemoryMiB, p.GPUs = 0, 0, 0 })
	got, err := Place(&Cluster{Nodes: nodes, Pods: list})
	if err != nil {
		t.Fatal(err)
	}
	if last := list[PodsPerNode].Name; got[last] != "b" {
		t.Errorf("pod number %d is on %s", PodsPerNode+1, got[last])
	}
}

func TestPlaceNamesPodsThatFitNowhere(t *testing.T) {
	nodes := []Node{{Name: "n", CPUMilli: 64000, MemoryMiB: 64 << 10, GPUs: 1}}
	_, err := Place(&Cluster{Nodes: nodes, Pods: pods(2, nil)})
	if want := "place pods: 1 fit on no node: p1 (1000m cpu, 1024 MiB, 1 GPUs)"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = Place(&Cluster{Nodes: nodes, Pods: pods(14, nil)})
	if got := fmt.Sprint(err); !strings.HasPrefix(got, "place pods: 13 fit on no node: p1 (") || !strings.HasSuffix(got, " and 3 more") {
		t.Error(got)
	}
}

func TestExpect(t *testing.T) {
	c := &Cluster{
		Nodes: []Node{{Name: "a", GPUs: 4}, {Name: "b", GPUs: 8}, {Name: "c"}},
		Pods: []Pod{
			{Name: "run2", GPUs: 2, Phase: corev1.PodRunning},
			{Name: "run1", GPUs: 1, Phase: corev1.PodRunning},
			{Name: "run0", GPUs: 0, Phase: corev1.PodRunning},
			{Name: "wait", GPUs: 8, Phase: corev1.PodPending},
			{Name: "fail", GPUs: 3, Phase: corev1.PodFailed},
			{Name: "done", GPUs: 1, Phase: corev1.PodSucceeded},
		},
	}
	got := Expect(c, map[string]string{"run2": "a", "run1": "a", "run0": "c", "fail": "a", "done": "b"})
	want := Totals{Requested: 3, Allocatable: 12, Free: 9, Pending: 8, Naive: 15, PerNode: map[string]int64{"a": 3, "b": 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
