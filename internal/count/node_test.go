package count_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

func taint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

func ready(status corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Conditions[0].Status = status }
}

func label(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func gives(name corev1.ResourceName, amount string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Capacity[name], n.Status.Allocatable[name] = resource.MustParse(amount), resource.MustParse(amount)
	}
}

// TestStates: N3. Whatever its state, a node keeps its row and its free devices;
// only what is usable changes.
func TestStates(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*corev1.Node)
		want   []count.State
	}{
		{"takes pods", func(*corev1.Node) {}, nil},
		{"Ready is False", ready(corev1.ConditionFalse), []count.State{count.NotReady}},
		{"Ready is Unknown", ready(corev1.ConditionUnknown), []count.State{count.NotReady}},
		{"no condition yet", func(n *corev1.Node) { n.Status.Conditions = nil }, []count.State{count.NotReady}},
		{"cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }, []count.State{count.SchedulingDisabled}},
		{"the GPU's own taint", taint("nvidia.com/gpu", corev1.TaintEffectNoSchedule), nil},
		{"another vendor's", taint("amd.com/gpu", corev1.TaintEffectNoSchedule), nil},
		{"a team's taint", taint("team", corev1.TaintEffectNoSchedule), []count.State{count.Tainted}},
		{"NoExecute", taint("team", corev1.TaintEffectNoExecute), []count.State{count.Tainted}},
		{"PreferNoSchedule is only a wish", taint("team", corev1.TaintEffectPreferNoSchedule), nil},
		{"a taint that says what Ready does not say yet", taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule), []count.State{count.NotReady}},
		{"unreachable", taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), []count.State{count.NotReady}},
		{"the taint of a cordon", taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), []count.State{count.SchedulingDisabled}},
		{"all at once", func(n *corev1.Node) {
			ready(corev1.ConditionFalse)(n)
			n.Spec.Unschedulable = true
			taint("team", corev1.TaintEffectNoExecute)(n)
		}, []count.State{count.NotReady, count.SchedulingDisabled, count.Tainted}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			snap := count.Take(count.World{Nodes: []*count.Node{node("n1", "8", "8", tc.change)}, Pods: read(pod()), NodesKnown: true})
			row := snap.Rows[0]
			if diff := cmp.Diff(tc.want, row.States); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
			usable := int64(6)
			if tc.want != nil {
				usable = 0
			}
			if row.Free != 6 || row.UsableFree != usable {
				t.Errorf("free %d, usable %d; want 6, %d", row.Free, row.UsableFree, usable)
			}
			if fit := snap.Of(count.NVIDIA).Fit; fit.LargestFree != usable || fit.Sizes[0].Stranded != 6-usable {
				t.Errorf("largest free %d, stranded %d; want %d, %d", fit.LargestFree, fit.Sizes[0].Stranded, usable, 6-usable)
			}
		})
	}
}

// TestResourcesAreNeverSummed: N5. MIG slices, shared slots and whole devices of
// one node are three resources, and each has its row.
func TestResourcesAreNeverSummed(t *testing.T) {
	n := node("n1", "4", "4", gives("nvidia.com/mig-3g.20gb", "8"), gives("nvidia.com/mig-1g.5gb.shared", "2"), gives("nvidia.com/gpumem", "8000"))
	snap := count.Take(count.World{Nodes: []*count.Node{n}, NodesKnown: true})
	var got []string
	for _, row := range snap.Rows {
		got = append(got, row.Resource)
	}
	if diff := cmp.Diff([]string{"nvidia.com/gpu", "nvidia.com/mig-1g.5gb.shared", "nvidia.com/mig-3g.20gb"}, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for resource, want := range map[string]int64{count.NVIDIA: 4, "nvidia.com/mig-3g.20gb": 8, "nvidia.com/mig-1g.5gb.shared": 2} {
		if got := snap.Of(resource).Allocatable; got != want {
			t.Errorf("%s has %d, want %d", resource, got, want)
		}
	}
}

// TestModelAndReplicas: N4 and N5.
func TestModelAndReplicas(t *testing.T) {
	for _, tc := range []struct {
		name     string
		change   func(*corev1.Node)
		model    string
		replicas int64
	}{
		{"one product", func(*corev1.Node) {}, "A100", 0},
		{"no label", func(n *corev1.Node) { delete(n.Labels, "nvidia.com/gpu.product") }, count.UnknownModel, 0},
		{"four slots a device", label("nvidia.com/gpu.replicas", "4"), "A100", 4},
		{"one slot a device", label("nvidia.com/gpu.replicas", "1"), "A100", 0},
		{"not a number", label("nvidia.com/gpu.replicas", "many"), "A100", 0},
	} {
		snap := count.Take(count.World{Nodes: []*count.Node{node("n1", "32", "32", tc.change)}, NodesKnown: true})
		if row := snap.Rows[0]; row.Model != tc.model || row.Replicas != tc.replicas || row.Allocatable != 32 {
			t.Errorf("%s: %d slots of %s, %d a device; want 32, %s, %d", tc.name, row.Allocatable, row.Model, row.Replicas, tc.model, tc.replicas)
		}
	}
}

// TestChurnOfLabels: N4. A label that says nothing of devices does not even cause
// a pass; one that names another product changes no count.
func TestChurnOfLabels(t *testing.T) {
	before := node("n1", "8", "8")
	if !before.Equal(node("n1", "8", "8", label("nvidia.com/gfd.timestamp", "17"))) {
		t.Error("a timestamp of feature discovery makes a difference")
	}
	after := node("n1", "8", "8", label("nvidia.com/gpu.product", "A100-SXM4"))
	if before.Equal(after) {
		t.Error("another product makes no difference")
	}
	take := func(n *count.Node) count.Numbers {
		return count.Take(count.World{Nodes: []*count.Node{n}, Pods: read(pod()), NodesKnown: true}).Of(count.NVIDIA).Numbers
	}
	if diff := cmp.Diff(take(before), take(after)); diff != "" {
		t.Errorf("another product changed a count:\n%s", diff)
	}
}

func TestFit(t *testing.T) {
	w := count.World{NodesKnown: true, Nodes: []*count.Node{
		node("a", "8", "8"), node("b", "8", "3"), node("c", "16", "16"), node("d", "8", "8", label("nvidia.com/gpu.product", "T4")),
		node("e", "8", "8", ready(corev1.ConditionFalse)),
	}}
	sum := count.Take(w).Of(count.NVIDIA)
	want := count.Fit{
		LargestFree: 16,
		Sizes: []count.Size{
			{Devices: 1, Placeable: 35, Stranded: 8},
			{Devices: 2, Placeable: 17, Stranded: 9},
			{Devices: 4, Placeable: 8, Stranded: 11},
			{Devices: 8, Placeable: 4, Stranded: 11},
			{Devices: 16, Placeable: 1, Stranded: 27},
		},
		Histogram: []count.Bucket{{Free: 3, Nodes: 1}, {Free: 8, Nodes: 3}, {Free: 16, Nodes: 1}},
	}
	if diff := cmp.Diff(want, sum.Fit); diff != "" {
		t.Errorf("all models (-want +got):\n%s", diff)
	}
	t4 := sum.Models[1]
	if t4.Name != "T4" || t4.Fit.LargestFree != 8 || t4.Fit.Sizes[3] != (count.Size{Devices: 8, Placeable: 1}) {
		t.Errorf("T4: %+v", t4)
	}
}
