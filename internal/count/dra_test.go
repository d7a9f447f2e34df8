package count_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestDRA has a small cluster for each thing that rules D1 to D5 say.
func TestDRA(t *testing.T) {
	admin := func(r *resourcev1.DeviceRequestAllocationResult) { r.AdminAccess = ptr(true) }
	share := func(id types.UID) func(*resourcev1.DeviceRequestAllocationResult) {
		return func(r *resourcev1.DeviceRequestAllocationResult) { r.ShareID = &id }
	}
	for _, tc := range []struct {
		name string
		objects
		want []string
	}{
		// D1: which class a resource belongs to.
		{"D1 of two classes the newer has the name", objects{
			classes: []*resourcev1.DeviceClass{
				created(100, class("all", count.NVIDIA, `device.driver == "gpu.nvidia.com"`)),
				created(200, class("few", count.NVIDIA, wholeGPUs+` && device.attributes["gpu.nvidia.com"].uuid == "gpu-0"`)),
			},
			slices: []*resourcev1.ResourceSlice{offers("n1", 4)},
		}, []string{"n1 all dra 4/4 free 4", "n1 nvidia.com/gpu dra 1/1 free 1"}},
		{"D1 of two as new as each other, the first by name", objects{
			classes: []*resourcev1.DeviceClass{
				class("b", count.NVIDIA, wholeGPUs+` && device.attributes["gpu.nvidia.com"].uuid == "gpu-0"`),
				class("a", count.NVIDIA, wholeGPUs),
			},
			slices: []*resourcev1.ResourceSlice{offers("n1", 4)},
		}, []string{"n1 b dra 1/1 free 1", "n1 nvidia.com/gpu dra 4/4 free 4"}},
		{"D1 a name that is no GPU is not counted", objects{
			classes: []*resourcev1.DeviceClass{class("nic", "example.com/nic", `device.driver == "nic.example.com"`)},
			slices:  []*resourcev1.ResourceSlice{offers("n1", 4, ofDriver("nic.example.com"))},
		}, nil},

		// D2: which source a node's devices come from.
		{"D2, A8: a pod served by a claim is counted once, from the claim", objects{
			slices: []*resourcev1.ResourceSlice{offers("n1", 8)},
			claims: []*resourcev1.ResourceClaim{holds("p-extended", "n1/gpu-0", "n1/gpu-1")},
			pods:   []*corev1.Pod{pod(served("p-extended"))},
		}, []string{"n1 nvidia.com/gpu dra 8/8 requested 2 free 6"}},
		{"D2, A9: a resource that is left with 0 is no row", objects{
			nodes:  []*count.Node{node("n1", "8", "0")},
			slices: []*resourcev1.ResourceSlice{offers("n1", 8)},
		}, []string{"n1 nvidia.com/gpu dra 8/8 free 8"}},
		{"D2 without the evidence the pod had its devices of a plugin that went away", objects{
			nodes:  []*count.Node{node("n1", "8", "0")},
			slices: []*resourcev1.ResourceSlice{offers("n1", 8)},
			pods:   []*corev1.Pod{pod()},
		}, []string{"n1 nvidia.com/gpu device-plugin 8/0 requested 2 over 2", "n1 nvidia.com/gpu dra 8/8 free 8"}},
		{"D2 both sources on one node are two rows", objects{
			nodes:  []*count.Node{node("n1", "4", "4")},
			slices: []*resourcev1.ResourceSlice{offers("n1", 2)},
			pods:   []*corev1.Pod{pod()},
			claims: []*resourcev1.ResourceClaim{holds("c", "n1/gpu-0")},
		}, []string{"n1 nvidia.com/gpu device-plugin 4/4 requested 2 free 2", "n1 nvidia.com/gpu dra 2/2 requested 1 free 1"}},
		{"D2 a plugin that comes back is charged for pods that DRA serves, and they are counted once", objects{
			nodes:  []*count.Node{node("n1", "8", "8")},
			slices: []*resourcev1.ResourceSlice{offers("n1", 8)},
			claims: []*resourcev1.ResourceClaim{holds("p-extended", "n1/gpu-0", "n1/gpu-1")},
			pods:   []*corev1.Pod{pod(served("p-extended"))},
		}, []string{"n1 nvidia.com/gpu device-plugin 8/8 free 6 claimed 2", "n1 nvidia.com/gpu dra 8/8 requested 2 free 6"}},

		// D3: what is allocated.
		{"D3 a device counts once, whoever holds it and whoever has reserved it", objects{
			slices: []*resourcev1.ResourceSlice{offers("n1", 8)},
			claims: []*resourcev1.ResourceClaim{holds("a", "n1/gpu-0", "n1/gpu-1"), holds("b", "n1/gpu-1", "n1/gpu-2")},
		}, []string{"n1 nvidia.com/gpu dra 8/8 requested 3 free 5"}},
		{"D3 shares of a device are one device", objects{
			slices: []*resourcev1.ResourceSlice{offers("n1", 8)},
			claims: []*resourcev1.ResourceClaim{results(holds("a", "n1/gpu-0"), share("1")), results(holds("b", "n1/gpu-0"), share("2"))},
		}, []string{"n1 nvidia.com/gpu dra 8/8 requested 1 free 7"}},
		{"D3 administration takes nothing", objects{
			slices: []*resourcev1.ResourceSlice{offers("n1", 8)},
			claims: []*resourcev1.ResourceClaim{
				results(holds("a", "n1/gpu-0", "n1/gpu-1"), admin),
				holds("b", "n1/gpu-1"),
			},
		}, []string{"n1 nvidia.com/gpu dra 8/8 requested 1 free 7"}},
		{"D3 a claim that is not allocated holds nothing", objects{
			slices: []*resourcev1.ResourceSlice{offers("n1", 8)},
			claims: []*resourcev1.ResourceClaim{unallocated(holds("a", "n1/gpu-0"))},
		}, []string{"n1 nvidia.com/gpu dra 8/8 free 8"}},
		{"D3 a class that is not counted takes devices all the same", objects{
			slices: []*resourcev1.ResourceSlice{offers("n1", 8)},
			claims: []*resourcev1.ResourceClaim{asking("anything", holds("a", "n1/gpu-0"))},
		}, []string{"n1 nvidia.com/gpu dra 8/8 requested 1 free 7"}},
		{"D3 devices that are no longer offered are in use all the same", objects{
			claims: []*resourcev1.ResourceClaim{holds("a", "n1/gpu-0", "n1/gpu-1")},
		}, []string{"n1 nvidia.com/gpu dra 0/0 requested 2 over 2"}},

		// D4: which devices there are.
		{"D4 only the newest generation", objects{
			slices: []*resourcev1.ResourceSlice{
				offers("n1", 8, inPool("n1", 1, 1)), offers("n1", 6, inPool("n1", 3, 1)), offers("n1", 7, inPool("n1", 2, 1)),
			},
		}, []string{"n1 nvidia.com/gpu dra 6/6 free 6"}},
		{"D4 nothing of an incomplete pool", objects{
			slices: []*resourcev1.ResourceSlice{offers("n1", 8, inPool("n1", 1, 2))},
		}, nil},
		{"D4 a newer generation that is incomplete hides an older one", objects{
			slices: []*resourcev1.ResourceSlice{offers("n1", 8, inPool("n1", 1, 1)), offers("n1", 4, inPool("n1", 2, 2))},
			claims: []*resourcev1.ResourceClaim{holds("a", "n1/gpu-0")},
		}, []string{"n1 nvidia.com/gpu dra 0/0 requested 1 over 1"}},
		{"D4 pools of different drivers are different pools", objects{
			classes: []*resourcev1.DeviceClass{class(driver, count.NVIDIA, wholeGPUs), class("gpu.amd.com", "", `device.driver == "gpu.amd.com"`)},
			slices:  []*resourcev1.ResourceSlice{offers("n1", 8), offers("n1", 4, ofDriver("gpu.amd.com"), inPool("n1", 7, 1))},
			claims:  []*resourcev1.ResourceClaim{holds("a", "n1/gpu-0")},
		}, []string{"n1 amd.com/gpu dra 4/4 free 4", "n1 nvidia.com/gpu dra 8/8 requested 1 free 7"}},
		{"D4 a device that is allocated and tainted is gone once", objects{
			slices: []*resourcev1.ResourceSlice{offers("n1", 8, tainted(resourcev1.DeviceTaintEffectNoExecute, 0, 1))},
			claims: []*resourcev1.ResourceClaim{holds("a", "n1/gpu-1", "n1/gpu-2")},
		}, []string{"n1 nvidia.com/gpu dra 8/6 requested 2 free 5 over 1"}},
		{"D4 a taint without an effect is only a remark", objects{
			slices: []*resourcev1.ResourceSlice{offers("n1", 2, tainted(resourcev1.DeviceTaintEffectNoSchedule, 0), tainted(resourcev1.DeviceTaintEffectNone, 1), tainted("Later", 1))},
		}, []string{"n1 nvidia.com/gpu dra 2/1 free 1"}},
		{"D4 all pools of a node", objects{
			slices: []*resourcev1.ResourceSlice{offers("n1", 2), offers("n1", 3, inPool("n1-b", 1, 1))},
		}, []string{"n1 nvidia.com/gpu dra 5/5 free 5"}},
		{"D4 devices that say themselves where they are", objects{
			nodes:  []*count.Node{node("n1", "0", "0"), node("n2", "0", "0")},
			slices: []*resourcev1.ResourceSlice{offers("", 3, perDevice("n1", "n2", "n2"))},
			claims: []*resourcev1.ResourceClaim{holds("a", "/gpu-2")},
		}, []string{"n1 nvidia.com/gpu dra 1/1 free 1", "n2 nvidia.com/gpu dra 2/2 requested 1 free 1"}},

		// D5: which classes are counted, and as what.
		{"D5 the vendors' classes, with or without a resource name", objects{
			classes: []*resourcev1.DeviceClass{class(driver, "", wholeGPUs)},
			slices:  []*resourcev1.ResourceSlice{offers("n1", 8)},
		}, []string{"n1 nvidia.com/gpu dra 8/8 free 8"}},
		{"D5 other classes of the driver under their own name", objects{
			classes: []*resourcev1.DeviceClass{class(driver, count.NVIDIA, wholeGPUs), class("mig.nvidia.com", "", migGPUs)},
			slices:  []*resourcev1.ResourceSlice{offers("n1", 2, also(device("mig-0", "mig"), device("mig-1", "mig")))},
			claims:  []*resourcev1.ResourceClaim{asking("mig.nvidia.com", holds("a", "n1/mig-1"))},
		}, []string{"n1 mig.nvidia.com dra 2/2 requested 1 free 1", "n1 nvidia.com/gpu dra 2/2 free 2"}},
		{"D5 a class given by flag", objects{
			classes: []*resourcev1.DeviceClass{class("mine", "", `device.driver == "gpu.example.com"`)},
			slices:  []*resourcev1.ResourceSlice{offers("n1", 8, ofDriver("gpu.example.com"))},
			mapped:  map[string]string{"mine": "example.com/gpu"},
		}, []string{"n1 example.com/gpu dra 8/8 free 8"}},
		{"D5 two classes of one resource, each device once", objects{
			classes: []*resourcev1.DeviceClass{class(driver, "", wholeGPUs), class("all", count.NVIDIA, `device.driver == "gpu.nvidia.com"`)},
			slices:  []*resourcev1.ResourceSlice{offers("n1", 8)},
		}, []string{"n1 nvidia.com/gpu dra 8/8 free 8"}},
		{"D5, A23: devices of drivers that hand out no GPUs", objects{
			classes: []*resourcev1.DeviceClass{class(driver, count.NVIDIA, wholeGPUs), class("nic", "", `device.driver == "nic.example.com"`)},
			slices:  []*resourcev1.ResourceSlice{offers("n1", 8), offers("n1", 1, ofDriver("nic.example.com"))},
			claims: []*resourcev1.ResourceClaim{results(asking("nic", holds("a", "n1/gpu-0")), func(r *resourcev1.DeviceRequestAllocationResult) {
				r.Driver = "nic.example.com"
			})},
		}, []string{"n1 nvidia.com/gpu dra 8/8 free 8"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := tc.world()
			snap := count.Take(w)
			if diff := cmp.Diff(tc.want, lines(snap)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			noNegatives(t, snap)
			slices.Reverse(w.DRA.Classes)
			slices.Reverse(w.DRA.Slices)
			slices.Reverse(w.DRA.Claims)
			if diff := cmp.Diff(snap, count.Take(w)); diff != "" {
				t.Errorf("in another order (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsNotCountedIsSaid: D4 and D5.
func TestWhatIsNotCountedIsSaid(t *testing.T) {
	everywhere := func(s *resourcev1.ResourceSlice) { s.Spec.NodeName, s.Spec.AllNodes = nil, ptr(true) }
	snap := count.Take(objects{
		nodes: []*count.Node{node("n1", "0", "0"), node("n2", "0", "0"), node("n3", "0", "0")},
		classes: []*resourcev1.DeviceClass{
			class(driver, count.NVIDIA, wholeGPUs),
			class("broken", "", `device.drver == "gpu.nvidia.com"`),
			class("careless", "", `device.attributes["gpu.nvidia.com"].memory > 40`),
		},
		slices: []*resourcev1.ResourceSlice{
			offers("n1", 2, inPool("n1", 4, 2)),
			offers("n2", 1), offers("n2", 1), // each says that it is the only one
			offers("n3", 2, inPool("n3", 1, 2)), offers("n3", 1, inPool("n3", 1, 2)), // gpu-0 twice
			offers("fabric", 3, everywhere),
			offers("n1", 1, ofDriver("nic.example.com"), inPool("n1", 1, 9)),
		},
		claims: []*resourcev1.ResourceClaim{holds("a", "n1/gpu-0"), holds("b", "fabric/gpu-1"), holds("c", "gone/gpu-1")},
	}.world())
	want := &count.DRAStatus{
		State: count.DRASynced,
		Classes: []count.ClassIssue{
			{Class: "broken", Reason: "not counted: selector 1 does not compile: "},
			{Class: "careless", Reason: "not counted on some devices: selector 1 fails on device gpu-0: no such key: memory", Devices: 10},
		},
		Pools: []count.PoolIssue{
			{Driver: driver, Pool: "fabric", Reason: "not on one node: several nodes can reach the devices", Devices: 3, Allocated: 1},
			{Driver: driver, Pool: "gone", Node: "gone", Reason: "no slices", Allocated: 1},
			{Driver: driver, Pool: "n1", Node: "n1", Reason: "incomplete: 1 of 2 slices of generation 4", Devices: 2, Allocated: 1},
			{Driver: driver, Pool: "n2", Node: "n2", Reason: "incomplete: 2 of 1 slices of generation 1", Devices: 2},
			{Driver: driver, Pool: "n3", Node: "n3", Reason: "invalid: two devices are called gpu-0", Devices: 3},
		},
	}
	for i := range snap.DRA.Classes {
		if head, _, ok := strings.Cut(snap.DRA.Classes[i].Reason, "compilation failed"); ok {
			snap.DRA.Classes[i].Reason = head
		}
	}
	if diff := cmp.Diff(want, snap.DRA); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if got := snap.Of(count.NVIDIA); got.Orphaned != 1 || got.Requested != 1 || got.Capacity != 0 {
		t.Errorf("orphaned %d, requested %d, capacity %d; want 1 on the node that is gone, 1 on n1, 0", got.Orphaned, got.Requested, got.Capacity)
	}
	noNegatives(t, snap)
}

func ptr[T any](v T) *T { return &v }
