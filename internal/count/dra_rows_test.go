package count_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestTheSameNumberWithAndWithoutSightOfClaims: D2. Losing the permission to see
// claims changes what is known of free devices, and not what is requested.
func TestTheSameNumberWithAndWithoutSightOfClaims(t *testing.T) {
	w := objects{
		slices: []*resourcev1.ResourceSlice{offers("n1", 8)},
		claims: []*resourcev1.ResourceClaim{holds("p-extended", "n1/gpu-0", "n1/gpu-1")},
		pods:   []*corev1.Pod{pod(served("p-extended")), pod(served("q"), on("gone"), phase(corev1.PodFailed))},
	}.world()
	for _, state := range []count.DRAState{count.DRASynced, count.DRASyncing, count.DRAForbidden, count.DRAUnreachable, count.DRAAbsent, ""} {
		w.DRA.State = state
		want := []string{"n1 nvidia.com/gpu dra 0/0 requested 2"}
		if state == count.DRASynced {
			want = []string{"n1 nvidia.com/gpu dra 8/8 requested 2 free 6"}
		}
		if state == "" {
			w.DRA = nil
		}
		snap := count.Take(w)
		if diff := cmp.Diff(want, lines(snap)); diff != "" {
			t.Errorf("%q: rows (-want +got):\n%s", state, diff)
		}
		if w.DRA != nil && snap.DRA.State != state || w.DRA == nil && snap.DRA != nil {
			t.Errorf("%q: the snapshot says %+v", state, snap.DRA)
		}
		noNegatives(t, snap)
	}
}

// TestADeadPluginIsNoDRA: A10 and D2. A node whose device plugin went away does not
// become a node of DRA by that, and its pods stay counted.
func TestADeadPluginIsNoDRA(t *testing.T) {
	snap := count.Take(objects{nodes: []*count.Node{node("n1", "8", "0")}, pods: []*corev1.Pod{pod()}}.world())
	if diff := cmp.Diff([]string{"n1 nvidia.com/gpu device-plugin 8/0 requested 2 over 2"}, lines(snap)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestImplicitNames: D1. A request for a class by name is demand for what the class
// stands for, and once it is bound its claim is what counts.
func TestImplicitNames(t *testing.T) {
	asks := func(class string, changes ...func(*corev1.Pod)) *corev1.Pod {
		name := corev1.ResourceName("deviceclass.resource.kubernetes.io/" + class)
		c := corev1.Container{Name: "m2", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse("3")}}}
		return pod(append([]func(*corev1.Pod){containers(c)}, changes...)...)
	}
	o := objects{
		classes: []*resourcev1.DeviceClass{
			class(driver, count.NVIDIA, wholeGPUs), class("mig.nvidia.com", "", migGPUs), class("nic", "", `device.driver == "nic.example.com"`),
		},
		slices: []*resourcev1.ResourceSlice{offers("n1", 4, also(device("mig-0", "mig"))), offers("n1", 1, ofDriver("nic.example.com"))},
		claims: []*resourcev1.ResourceClaim{holds("p-extended", "n1/gpu-0", "n1/gpu-1", "n1/gpu-2")},
		pods: []*corev1.Pod{
			asks(driver, waiting), asks("mig.nvidia.com", waiting), asks("nic", waiting), asks("unheard-of", waiting), pod(waiting),
			asks(driver, served("p-extended")),
		},
	}
	snap := count.Take(o.world())
	if diff := cmp.Diff([]string{"n1 mig.nvidia.com dra 1/1 free 1", "n1 nvidia.com/gpu dra 4/4 requested 3 free 1"}, lines(snap)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for name, want := range map[string]int64{count.NVIDIA: 3 + 2, "mig.nvidia.com": 3, "nic": 0, "unheard-of": 0} {
		if got := snap.Of(name).Pending.Devices; got != want {
			t.Errorf("%d %s are waited for, want %d", got, name, want)
		}
	}
	if len(snap.Summaries) != 2 {
		t.Errorf("%d resources, want 2", len(snap.Summaries))
	}
	w := o.world()
	w.DRA = nil
	if snap := count.Take(w); snap.Of(count.NVIDIA).Pending.Devices != 2 || len(snap.Summaries) != 1 {
		t.Errorf("without DRA nobody knows what a class stands for: %+v", snap.Summaries)
	}
}

// TestPartitions: D6. One GPU that can be had whole, in two halves or in four
// quarters; what is in use of it keeps the rest from being had, whatever row that
// is in.
func TestPartitions(t *testing.T) {
	gpu := func(s *resourcev1.ResourceSlice) {
		*s = *offers("n1", 0, inPool("n1", 1, 2))
		part := func(name, kind, memory string, slices ...any) {
			s.Spec.Devices = append(s.Spec.Devices, device(name, kind, counters("gpu-0", append([]any{"memory", memory}, slices...)...)))
		}
		part("gpu-0", "gpu", "40Gi", "slice-0", "1", "slice-1", "1", "slice-2", "1", "slice-3", "1")
		part("half-0", "mig", "20Gi", "slice-0", "1", "slice-1", "1")
		part("half-1", "mig", "20Gi", "slice-2", "1", "slice-3", "1")
		part("quarter-0", "mig", "10Gi", "slice-0", "1")
		part("quarter-1", "mig", "10Gi", "slice-1", "1")
		part("quarter-2", "mig", "10Gi", "slice-2", "1")
		part("quarter-3", "mig", "10Gi", "slice-3", "1")
	}
	sets := offers("n1", 0, inPool("n1", 1, 2), func(s *resourcev1.ResourceSlice) {
		s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "gpu-0", Counters: counters("", "memory", "40Gi",
			"slice-0", "1", "slice-1", "1", "slice-2", "1", "slice-3", "1").Counters}}
	})
	classes := []*resourcev1.DeviceClass{class(driver, count.NVIDIA, wholeGPUs), class("mig.nvidia.com", "", migGPUs)}
	all := []*resourcev1.DeviceClass{class("all", count.NVIDIA, `device.driver == "gpu.nvidia.com"`)}
	for _, tc := range []struct {
		name    string
		classes []*resourcev1.DeviceClass
		held    []string
		tainted []int
		want    []string
	}{
		{"nothing in use", classes, nil, nil, []string{"n1 mig.nvidia.com dra 4/4 free 4", "n1 nvidia.com/gpu dra 1/1 free 1"}},
		{"the whole", classes, []string{"n1/gpu-0"}, nil, []string{"n1 mig.nvidia.com dra 4/4 blocked 4", "n1 nvidia.com/gpu dra 1/1 requested 1"}},
		{"a quarter", classes, []string{"n1/quarter-1"}, nil, []string{"n1 mig.nvidia.com dra 4/4 requested 1 free 3", "n1 nvidia.com/gpu dra 1/1 blocked 1"}},
		{"a half", classes, []string{"n1/half-1"}, nil, []string{"n1 mig.nvidia.com dra 4/4 requested 1 free 2 blocked 1", "n1 nvidia.com/gpu dra 1/1 blocked 1"}},
		{"a sick quarter", classes, nil, []int{3}, []string{"n1 mig.nvidia.com dra 4/3 free 3", "n1 nvidia.com/gpu dra 1/1 free 1"}},
		{"a class of the whole and its parts", all, nil, nil, []string{"n1 nvidia.com/gpu dra 4/4 free 4"}},
		{"and the whole in use", all, []string{"n1/gpu-0"}, nil, []string{"n1 nvidia.com/gpu dra 4/4 requested 1 blocked 3"}},
	} {
		t.Run("D6 "+tc.name, func(t *testing.T) {
			o := objects{classes: tc.classes, slices: []*resourcev1.ResourceSlice{offers("n1", 0, gpu, tainted(resourcev1.DeviceTaintEffectNoSchedule, tc.tainted...)), sets}}
			if tc.held != nil {
				o.claims = []*resourcev1.ResourceClaim{asking("mig.nvidia.com", holds("a", tc.held...))}
			}
			snap := count.Take(o.world())
			if diff := cmp.Diff(tc.want, lines(snap)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			noNegatives(t, snap)
		})
	}
}

// TestSourcesAreTotalledApart: D2. A GPU is a GPU in the total, and the label says
// how much of it comes from where; a node with both is one node.
func TestSourcesAreTotalledApart(t *testing.T) {
	o := objects{
		nodes:  []*count.Node{node("n1", "4", "4"), node("n2", "0", "0")},
		slices: []*resourcev1.ResourceSlice{offers("n1", 2), offers("n2", 8)},
		pods:   []*corev1.Pod{pod()},
		claims: []*resourcev1.ResourceClaim{holds("a", "n2/gpu-0")},
	}
	sum := count.Take(o.world()).Of(count.NVIDIA)
	want := []count.SourcePart{
		{Source: count.DevicePlugin, Nodes: 1, Numbers: count.Numbers{Capacity: 4, Allocatable: 4, Requested: 2, Free: 2, UsableFree: 2}},
		{Source: count.DynamicResources, Nodes: 2, Numbers: count.Numbers{Capacity: 10, Allocatable: 10, Requested: 1, Free: 9, UsableFree: 9}},
	}
	if diff := cmp.Diff(want, sum.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if sum.Nodes != 2 || sum.Capacity != 14 || sum.Requested != 3 || sum.Free != 11 || sum.Fit.LargestFree != 7 {
		t.Errorf("all sources: %d nodes, %+v, largest free %d", sum.Nodes, sum.Numbers, sum.Fit.LargestFree)
	}
	if sum := count.Take(world(read(pod()))).Of(count.NVIDIA); sum.Sources != nil {
		t.Errorf("device plugins alone need no label: %+v", sum.Sources)
	}
}

// TestNodeOfDRA: N3, N4 and R3 hold of DRA's rows too.
func TestNodeOfDRA(t *testing.T) {
	unlabelled := func(n *corev1.Node) { delete(n.Labels, "nvidia.com/gpu.product") }
	products := func(names ...string) func(*resourcev1.ResourceSlice) {
		return func(s *resourcev1.ResourceSlice) {
			for i, name := range names {
				s.Spec.Devices[i].Attributes["gpu.nvidia.com/productName"] = resourcev1.DeviceAttribute{StringValue: &name}
			}
		}
	}
	o := objects{
		nodes: []*count.Node{
			node("n1", "0", "0", ready(corev1.ConditionFalse)), node("n2", "0", "0", unlabelled), node("n3", "0", "0", unlabelled),
		},
		slices: []*resourcev1.ResourceSlice{
			offers("n1", 2), offers("n2", 2, products("B200", "B200")), offers("n3", 2, products("B200", "T4")), offers("gone", 2),
		},
		claims: []*resourcev1.ResourceClaim{holds("a", "gone/gpu-0")},
	}
	snap := count.Take(o.world())
	for i, want := range []struct {
		model  string
		usable int64
	}{{"A100", 0}, {"B200", 2}, {count.UnknownModel, 2}} {
		if row := snap.Rows[i]; row.Model != want.model || row.Free != 2 || row.UsableFree != want.usable {
			t.Errorf("%+v; want model %s, free 2, usable %d", row, want.model, want.usable)
		}
	}
	if orphaned := snap.Of(count.NVIDIA).Orphaned; orphaned != 1 || len(snap.Rows) != 3 {
		t.Errorf("%d orphaned, %d rows; want 1 and 3", orphaned, len(snap.Rows))
	}
	w := o.world()
	w.Nodes, w.NodesKnown = nil, false
	if diff := cmp.Diff([]string{"gone nvidia.com/gpu dra 0/0 requested 1"}, lines(count.Take(w))); diff != "" {
		t.Errorf("without nodes rows follow claims (-want +got):\n%s", diff)
	}
}

// TestWhoHoldsDevicesOfDRA: a claim's devices are its namespace's, and of the
// priority of the pod it was made for.
func TestWhoHoldsDevicesOfDRA(t *testing.T) {
	other := holds("shared", "n1/gpu-0", "n1/gpu-1")
	other.Namespace = "other"
	urgent := func(p *corev1.Pod) { p.Spec.Priority = ptr[int32](7) }
	sum := count.Take(objects{
		slices: []*resourcev1.ResourceSlice{offers("n1", 8)},
		claims: []*resourcev1.ResourceClaim{holds("p-extended", "n1/gpu-2"), other},
		pods:   []*corev1.Pod{pod(served("p-extended"), urgent)},
	}.world()).Of(count.NVIDIA)
	if diff := cmp.Diff([]count.Share{{Name: "ns", Requested: 1}, {Name: "other", Requested: 2}}, sum.Namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]count.Share{{Name: "high", Requested: 1}, {Name: "unknown", Requested: 2}}, sum.Priorities); diff != "" {
		t.Errorf("priorities (-want +got):\n%s", diff)
	}
}
