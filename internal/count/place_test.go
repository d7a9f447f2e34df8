package count_test

import (
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestPlaceAgreesWithFit: for the sizes that a summary has, of a resource and of each
// of its models, and putting pods down one by one comes to the same.
func TestPlaceAgreesWithFit(t *testing.T) {
	for seed := range uint64(worlds) {
		snap := takeOf(randomWorld(seed)).snapshot
		for _, sum := range snap.Summaries {
			parts := map[string]count.Fit{"": sum.Fit}
			for _, model := range sum.Models {
				parts[model.Name] = model.Fit
			}
			for model, fit := range parts {
				for _, size := range fit.Sizes {
					got := snap.Place(count.Ask{Resource: sum.Resource, Model: model, Devices: size.Devices, Pods: 100})
					if got.Placeable != size.Placeable || got.Stranded != size.Stranded {
						t.Errorf("seed %d, %s of model %q by %d: %d placeable and %d stranded, want %+v",
							seed, sum.Resource, model, size.Devices, got.Placeable, got.Stranded, size)
					}
					if err := sound(snap, got, sum.Resource, model, size.Devices); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
			}
		}
	}
}

// sound checks that the pods are where there is room, as many as there are, and that
// each node with the resource is either among the places, not needed, or explained.
func sound(snap *count.Snapshot, p count.Placement, resource, model string, devices int64) error {
	var placed int64
	room := map[string]int64{}
	for _, row := range snap.Rows {
		if row.Resource == resource && (model == "" || row.Model == model) {
			room[row.Node] += row.UsableFree
		}
	}
	for _, place := range p.Places {
		placed += place.Pods
		if room[place.Node] -= place.Pods * devices; room[place.Node] < 0 || place.Pods < 1 {
			return fmt.Errorf("%d pods of %d on %s, where there is no room", place.Pods, devices, place.Node)
		}
	}
	if want := min(100, p.Placeable); placed != want {
		return fmt.Errorf("%d pods are placed, want %d", placed, want)
	}
	return nil
}

// TestPlaceSaysWhyNot names each reason (N2, N3), and prefers nodes on which the least
// is left over.
func TestPlaceSaysWhyNot(t *testing.T) {
	eight := count.Amounts{{Resource: count.NVIDIA, Value: 8}}
	h100 := []count.Label{{Key: "nvidia.com/gpu.product", Value: "H100"}}
	node := func(name string, change func(*count.Node)) *count.Node {
		n := &count.Node{Name: name, Capacity: eight, Allocatable: eight, Labels: h100}
		if change != nil {
			change(n)
		}
		return n
	}
	states := func(states ...count.State) func(*count.Node) {
		return func(n *count.Node) { n.States = states }
	}
	pod := func(name, node string, gpus int64) *count.Pod {
		return &count.Pod{Key: "ns/" + name, Node: node, Requests: count.Amounts{{Resource: count.NVIDIA, Value: gpus}}}
	}
	snap := count.Take(count.World{
		NodesKnown: true,
		Nodes: []*count.Node{
			node("a-empty", nil), node("b-half", nil), node("c-few", nil), node("d-full", nil), node("e-cordoned", states(count.SchedulingDisabled)),
			node("f-two", states(count.NotReady, count.Tainted)), node("g-broken", func(n *count.Node) { n.Allocatable = nil }),
			node("h-other", func(n *count.Node) { n.Labels = nil }), node("i-cordoned", states(count.SchedulingDisabled)),
			node("j-few", states(count.NotReady)),
		},
		Pods: []*count.Pod{
			pod("1", "b-half", 4), pod("2", "c-few", 5), pod("3", "d-full", 8), pod("4", "j-few", 7), pod("5", "e-cordoned", 4),
		},
	})
	got := snap.Place(count.Ask{Resource: count.NVIDIA, Model: "H100", Devices: 4, Pods: 2})
	want := count.Placement{
		Placeable: 3, Stranded: 8 + 4 + 3 + 4 + 8 + 8 + 1 - 12 + 0,
		Places: []count.Place{{Node: "b-half", Model: "H100", Pods: 1}, {Node: "a-empty", Model: "H100", Pods: 1}},
		Obstacles: []count.Obstacle{
			{Reason: "free, but cordoned", Nodes: 2, Free: 12}, {Reason: "free, but not ready and tainted", Nodes: 1, Free: 8},
			{Reason: "too few free", Nodes: 2, Free: 4}, {Reason: "all in use", Nodes: 1},
			{Reason: "no healthy devices", Nodes: 1}, {Reason: "another model", Nodes: 1, Free: 8},
		},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestPlaceLeavesLittleOver: of two nodes the one on which less would be left over comes
// first, be it the emptier one.
func TestPlaceLeavesLittleOver(t *testing.T) {
	var w count.World
	w.NodesKnown = true
	for name, free := range map[string]int64{"a-five": 5, "b-six": 6, "c-nine": 9} {
		devices := count.Amounts{{Resource: count.NVIDIA, Value: free}}
		w.Nodes = append(w.Nodes, &count.Node{Name: name, Capacity: devices, Allocatable: devices})
	}
	var got []string
	for _, place := range count.Take(w).Place(count.Ask{Resource: count.NVIDIA, Devices: 3, Pods: 100}).Places {
		got = append(got, fmt.Sprintf("%s %d", place.Node, place.Pods))
	}
	if want := []string{"b-six 2", "c-nine 3", "a-five 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestHoldersAddUp to what is requested in every row, where all devices come from
// device plugins.
func TestHoldersAddUp(t *testing.T) {
	held := 0
	for seed := range uint64(worlds) {
		out := takeOf(randomWorld(seed))
		for i, holders := range count.Holders(out.snapshot.Rows, out.world.Pods) {
			row, last := out.snapshot.Rows[i], ""
			var sum int64
			for _, h := range holders {
				if h.Namespace <= last {
					t.Errorf("seed %d: %s is not after %s", seed, h.Namespace, last)
				}
				last = h.Namespace
				if sum += h.Devices; sum < 0 && h.Devices > 0 {
					sum = 1<<63 - 1 // R11
				}
				held++
			}
			if sum != row.Requested {
				t.Errorf("seed %d, %s of %s: holders have %d of %d", seed, row.Resource, row.Node, sum, row.Requested)
			}
		}
	}
	if held < worlds {
		t.Errorf("only %d holders in %d worlds", held, worlds)
	}
}

// TestHoldersOfDRA: a pod that a claim serves is in the row of that source (D2), and
// claims of their own leave a part that is nobody's.
func TestHoldersOfDRA(t *testing.T) {
	rows := []count.Row{
		{Node: "n", Resource: count.NVIDIA, Source: count.DevicePlugin}, {Node: "n", Resource: count.NVIDIA, Source: count.DynamicResources},
	}
	two := count.Amounts{{Resource: count.NVIDIA, Value: 2}}
	got := count.Holders(rows, []*count.Pod{
		{Key: "a/served", Node: "n", Requests: two, More: &count.PodMore{Claim: &count.PodClaim{Name: "c", Resources: []string{count.NVIDIA}}}},
		{Key: "b/plain", Node: "n", Requests: two}, {Key: "c/elsewhere", Node: "m", Requests: two},
		{Key: "d/done", Node: "n", Requests: two, Terminal: true}, {Key: "e/waits", Requests: two},
	})
	want := [][]count.Holder{{{Namespace: "b", Devices: 2}}, {{Namespace: "a", Devices: 2}}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
