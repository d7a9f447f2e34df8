package plugin

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/gather"
)

// snapshotOf counts a dump without the command.
func snapshotOf(t *testing.T, path string) *count.Snapshot {
	t.Helper()
	names, err := count.ParseNames(count.DefaultNames()...)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	f := newFacts(names)
	report, err := gather.File(t.Context(), path, file, f)
	if err != nil {
		t.Fatal(err)
	}
	return count.Take(f.world(report, count.DefaultDRAClasses()))
}

// TestRowsAreThoseOfTheCount: every row of the JSON is what encoding/json makes of the
// count's row, and so what is published; and the published schema allows it.
func TestRowsAreThoseOfTheCount(t *testing.T) {
	var document struct {
		Rows   []json.RawMessage
		Totals []total
	}
	got := stand{}.run(t, "nodes", "--from", world, "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &document); err != nil {
		t.Fatalf("%v in\n%s", err, got.out)
	}
	snapshot := snapshotOf(t, world)
	if len(document.Rows) != len(snapshot.Rows) || len(snapshot.Rows) == 0 {
		t.Fatalf("%d rows, the count has %d", len(document.Rows), len(snapshot.Rows))
	}
	required, properties := schemaOfRows(t)
	for i := range snapshot.Rows {
		want, _ := json.Marshal(snapshot.Rows[i])
		var have, wanted map[string]any
		_ = json.Unmarshal(document.Rows[i], &have)
		_ = json.Unmarshal(want, &wanted)
		if diff := cmp.Diff(wanted, have); diff != "" {
			t.Errorf("row %d (-count +JSON):\n%s", i, diff)
		}
		for _, name := range required {
			if _, ok := have[name]; !ok {
				t.Errorf("row %d has no %s", i, name)
			}
		}
		for name := range have {
			if !properties[name] {
				t.Errorf("row %d has %s, of which the schema knows nothing", i, name)
			}
		}
	}
	for i, sum := range snapshot.Summaries {
		if got := document.Totals[i]; got.Resource != sum.Resource || got.Numbers != sum.Numbers || *got.Orphaned != sum.Orphaned ||
			*got.Pending != (pendingTally{sum.Pending.Devices, sum.Pending.Pods}) {
			t.Errorf("total %+v, the count has %+v", got, sum)
		}
	}
}

func schemaOfRows(t *testing.T) (required []string, properties map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "schema", "nodes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs struct {
			Row struct {
				Required   []string
				Properties map[string]any
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	properties = make(map[string]bool)
	for name := range schema.Defs.Row.Properties {
		properties[name] = true
	}
	return schema.Defs.Row.Required, properties
}

const gpu = count.NVIDIA

// randomWorld tells a visitor of a small world in which names collide, devices are
// shared, nodes are missing and all that counts occurs.
func randomWorld(r *rand.Rand, v gather.Visitor) {
	namespaces := []string{"a", "a-b", "a.b", "z"}
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	for i := range 3 {
		v.Node(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)},
			Status:     corev1.NodeStatus{Capacity: corev1.ResourceList{gpu: *resource.NewQuantity(r.Int64N(9), resource.DecimalSI)}},
		})
	}
	v.DeviceClass(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To(gpu)}})
	v.DeviceClass(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	for i := range 4 {
		driver := pick([]string{"gpu.nvidia.com", "nic.example.com"})
		node := fmt.Sprintf("n%d", i) // n3 does not exist
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(driver, i)}, Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
		}}
		for d := range 3 {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("d", d)})
		}
		v.ResourceSlice(slice)
	}
	for i := range 8 {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pick(namespaces), Name: fmt.Sprint("c", i%3)}}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: pick([]string{"gpu.nvidia.com", "other"}), Count: 1}}}
		for range r.IntN(3) {
			if claim.Status.Allocation == nil {
				claim.Status.Allocation = &resourcev1.AllocationResult{}
			}
			results := &claim.Status.Allocation.Devices.Results
			*results = append(*results, resourcev1.DeviceRequestAllocationResult{
				Request: "r", Driver: "gpu.nvidia.com", Pool: fmt.Sprint("n", r.IntN(4)), Device: fmt.Sprint("d", r.IntN(3)),
			})
		}
		v.ResourceClaim(claim)
	}
	for i := range 12 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pick(namespaces), Name: fmt.Sprint("p", i)}}
		name := corev1.ResourceName(pick([]string{gpu, gpu, "amd.com/gpu", resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com"}))
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: *resource.NewQuantity(r.Int64N(5), resource.DecimalSI)}}}}
		if r.IntN(3) > 0 {
			pod.Spec.NodeName = fmt.Sprint("n", r.IntN(4))
		}
		if r.IntN(4) == 0 {
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: ptr.To(fmt.Sprint("c", r.IntN(3)))}}
		}
		if r.IntN(5) == 0 {
			pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
				ResourceClaimName: fmt.Sprint("c", r.IntN(3)), RequestMappings: []corev1.ContainerExtendedResourceRequest{{ResourceName: string(name)}},
			}
		}
		v.Pod(pod)
	}
}

// TestThePartsAreTheWhole: what single pods and claims are shown with comes to what the
// count has, of each namespace and of the whole.
func TestThePartsAreTheWhole(t *testing.T) {
	seed := rand.Uint64()
	names, err := count.ParseNames(count.DefaultNames()...)
	if err != nil {
		t.Fatal(err)
	}
	held, asked, several := false, false, false
	// 300, and more if none of them had all that this is about.
	for i := uint64(0); i < 300 || i < 30_000 && (!held || !asked || !several); i++ {
		f := newFacts(names)
		randomWorld(rand.New(rand.NewPCG(seed, i)), f)
		report := gather.Report{NodesKnown: true, DRA: count.DRASynced}
		w := f.world(report, count.DefaultDRAClasses())
		r := &reading{facts: f, world: w, shares: f.shares(w), snapshot: count.Take(w)}

		w.Nodes, w.NodesKnown = nil, false // orphans are with their namespaces then
		if diff := cmp.Diff(perNamespace(count.Take(w)), addUp(r.shares)); diff != "" {
			t.Fatalf("seed %d, world %d: namespaces (-count +parts):\n%s", seed, i, diff)
		}
		for _, h := range r.holders(r.podRows(), true) {
			sum := r.snapshot.Of(h.Resource)
			held = held || h.Unused > 0 && h.Orphaned > 0
			if got := h.GPUs - h.Orphaned + h.Unused; got != sum.Requested {
				t.Fatalf("seed %d, world %d: %+v, %d requested", seed, i, h, sum.Requested)
			}
		}
		for _, row := range r.podRows() {
			want := r.shares.pods[row.key()][row.Resource].requested
			for _, name := range row.Claims {
				want += r.shares.claims[key{row.Namespace, name}][row.Resource].requested
			}
			if row.GPUs != want {
				t.Fatalf("seed %d, world %d: %+v, want %d", seed, i, row, want)
			}
			several = several || len(row.Claims) > 1
		}
		pending := make(map[string]int64)
		for _, row := range r.pendingRows() {
			asked = asked || len(row.Claims) > 0
			if len(row.Claims) == 0 {
				pending[row.Resource] += row.GPUs
			}
		}
		for resource, devices := range pending {
			if most := r.snapshot.Of(resource).Pending.Devices; devices > most {
				t.Fatalf("seed %d, world %d: %d %s are waited for, the count has %d", seed, i, devices, resource, most)
			}
		}
	}
	if !held || !asked || !several {
		t.Errorf("seed %d: no world had all that this is about (%v, %v, %v)", seed, held, asked, several)
	}
}

type shareKey struct{ resource, namespace string }

func perNamespace(snapshot *count.Snapshot) map[shareKey][2]int64 {
	out := make(map[shareKey][2]int64)
	for _, sum := range snapshot.Summaries {
		for _, share := range sum.Namespaces {
			out[shareKey{sum.Resource, share.Name}] = [2]int64{share.Requested, share.Pending}
		}
	}
	return out
}

func addUp(s shares) map[shareKey][2]int64 {
	out := make(map[shareKey][2]int64)
	for _, parts := range []map[key]portions{s.pods, s.claims} {
		for at, portions := range parts {
			for resource, share := range portions {
				k := shareKey{resource, at.namespace}
				sum := out[k]
				out[k] = [2]int64{sum[0] + share.requested, sum[1] + share.pending}
			}
		}
	}
	return out
}

// TestTotalsOfAllRowsAreThoseOfTheCount: what is added up when rows are selected is what
// the count adds up when none are.
func TestTotalsOfAllRowsAreThoseOfTheCount(t *testing.T) {
	snapshot := snapshotOf(t, world)
	sums := sum(snapshot.Rows)
	if len(sums) != len(snapshot.Summaries) {
		t.Fatalf("%d totals, the count has %d", len(sums), len(snapshot.Summaries))
	}
	for i, s := range sums {
		if want := snapshot.Summaries[i]; s.Resource != want.Resource || s.Numbers != want.Numbers || s.Nodes != want.Nodes {
			t.Errorf("%+v, the count has %+v of %d nodes", s, want.Numbers, want.Nodes)
		}
	}
	huge := count.Row{Resource: gpu, Numbers: count.Numbers{Capacity: 1 << 62}}
	if got := sum([]count.Row{huge, huge, huge}); got[0].Capacity != 1<<63-1 {
		t.Errorf("three times 2^62 is %d (R11)", got[0].Capacity)
	}
}

// TestNothingIsCountedTwice: an object that a dump has twice counts once.
func TestNothingIsCountedTwice(t *testing.T) {
	text, err := os.ReadFile(world)
	if err != nil {
		t.Fatal(err)
	}
	once := stand{in: string(text)}.run(t, "nodes", "-o", "json", "--from", "-")
	twice := stand{in: string(text) + "---\n" + string(text)}.run(t, "nodes", "-o", "json", "--from", "-")
	if once.out == "" || once.out != twice.out {
		t.Errorf("once:\n%s\ntwice:\n%s", once.out, twice.out)
	}
}

// TestDumps are real ones.
func TestDumps(t *testing.T) {
	for name, want := range map[string][]count.Row{
		"node-a100-mig-3-instances.yaml": {
			{Node: "qa-mig-worker-gpu-a100", Resource: "nvidia.com/mig-1g.5gb", Source: count.DevicePlugin, Model: "NVIDIA-A100-SXM4-40GB", Numbers: count.Numbers{Capacity: 2, Allocatable: 2, Free: 2, UsableFree: 2}},
			{Node: "qa-mig-worker-gpu-a100", Resource: "nvidia.com/mig-2g.10gb", Source: count.DevicePlugin, Model: "NVIDIA-A100-SXM4-40GB", Numbers: count.Numbers{Capacity: 1, Allocatable: 1, Free: 1, UsableFree: 1}},
		},
		"node-a100-1-workload.yaml": {
			{Node: "qa-mig-worker-gpu-1", Resource: gpu, Source: count.DevicePlugin, Model: "Tesla-T4", Numbers: count.Numbers{Capacity: 2, Allocatable: 2, Free: 2, UsableFree: 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("..", "..", "..", "shared", "data", "dumps", name)
			if _, err := os.Stat(path); err != nil {
				t.Skipf("the dump %s is not here", name)
			}
			got := stand{}.run(t, "nodes", "-o", "json", "--from", path)
			var document nodesDocument
			if err := json.Unmarshal([]byte(got.out), &document); err != nil {
				t.Fatalf("%v in %s%s", err, got.out, got.err)
			}
			if diff := cmp.Diff(want, document.Rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScopeOfADump: -n and -l say the same of a dump as of a cluster, and no number of a
// node changes with -n.
func TestScopeOfADump(t *testing.T) {
	all := stand{}.run(t, "nodes", "-o", "json", "--from", world)
	if got := (stand{}).run(t, "nodes", "-o", "json", "--from", world, "-n", "web"); got != all {
		t.Errorf("with -n nodes are\n%s", got.out)
	}
	var pods podsDocument
	got := stand{}.run(t, "pods", "-o", "json", "--from", world, "-n", "research")
	if err := json.Unmarshal([]byte(got.out), &pods); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int64)
	for _, row := range pods.Rows {
		seen[row.Namespace+"/"+row.Pod] = row.GPUs
	}
	if want := map[string]int64{"research/ext": 1, "research/solo": 2, "research/twin-a": 1, "research/twin-b": 1}; !maps.Equal(seen, want) {
		t.Errorf("pods of research: %v, want %v", seen, want)
	}
	if want := []holder{{Resource: gpu, Pods: 4, GPUs: 4, Unused: 1}}; !slices.Equal(pods.Totals, want) {
		t.Errorf("totals %v, want %v", pods.Totals, want)
	}
	if got := (stand{}).run(t, "pods", "-o", "name", "--from", world, "-l", "pod-template-hash"); got.out != "pod/api-7d4b9c6f5-x2x9p\npod/api-7d4b9c6f5-z8k4q\n" {
		t.Errorf("pods with a label: %s", got.out)
	}
}
