package count_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// dumps has nodes and a pod of real clusters, as kubectl edit shows them. It lies
// beside the repository, not in it.
var dumps = filepath.Join("..", "..", "..", "shared", "data", "dumps")

// load reads an object as kubectl printed it: YAML, below comments.
func load[T any](t *testing.T, name string) *T {
	t.Helper()
	f, err := os.Open(filepath.Join(dumps, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s does not exist", filepath.Join(dumps, name))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := new(T)
	if err := yaml.NewYAMLOrJSONDecoder(f, 4096).Decode(out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// TestDumpedNodes: a node of two whole GPUs, and one whose only GPU is cut up.
func TestDumpedNodes(t *testing.T) {
	type row struct {
		Resource              string
		Capacity, Allocatable int64
		Model                 string
		Replicas              int64
		States                []count.State
	}
	const a100 = "NVIDIA-A100-SXM4-40GB"
	for file, want := range map[string][]row{
		// In spite of its name. The label replicas: "1" says that nothing is shared.
		"node-a100-1-workload.yaml": {{Resource: "nvidia.com/gpu", Capacity: 2, Allocatable: 2, Model: "Tesla-T4"}},
		// nvidia.com/gpu and mig-3g.20gb are left at 0 and have no row (N1); the
		// partitions are not added up to anything (N5).
		"node-a100-mig-3-instances.yaml": {
			{Resource: "nvidia.com/mig-1g.5gb", Capacity: 2, Allocatable: 2, Model: a100},
			{Resource: "nvidia.com/mig-2g.10gb", Capacity: 1, Allocatable: 1, Model: a100},
		},
	} {
		t.Run(file, func(t *testing.T) {
			record := count.ReadNode(load[corev1.Node](t, file), names)
			snap := count.Take(count.World{Nodes: []*count.Node{&record}, NodesKnown: true})
			var got []row
			for _, r := range snap.Rows {
				got = append(got, row{r.Resource, r.Capacity, r.Allocatable, r.Model, r.Replicas, r.States})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDumpedPod: the scheduler of this cluster keeps what a pod got in an
// annotation, and no counter of requests sees that. With the same pod written the
// Kubernetes way, the partition is requested.
func TestDumpedPod(t *testing.T) {
	const slice = "nvidia.com/mig-1g.5gb"
	node := count.ReadNode(load[corev1.Node](t, "node-a100-mig-3-instances.yaml"), names)
	p := load[corev1.Pod](t, "pod-mig-1g-5gb.yaml")
	if p.Annotations[slice] != "1" || p.Spec.NodeName != node.Name {
		t.Fatalf("the pod has %q and is on %s", p.Annotations[slice], p.Spec.NodeName)
	}
	take := func() count.Numbers {
		return count.Take(count.World{Pods: read(p), Nodes: []*count.Node{&node}, NodesKnown: true}).Of(slice).Numbers
	}
	if diff := cmp.Diff(count.Numbers{Capacity: 2, Allocatable: 2, Free: 2, UsableFree: 2}, take()); diff != "" {
		t.Errorf("as it is (-want +got):\n%s", diff)
	}
	p.Spec.Containers[0].Resources.Requests[slice] = resource.MustParse("1")
	if diff := cmp.Diff(count.Numbers{Capacity: 2, Allocatable: 2, Requested: 1, Free: 1, UsableFree: 1}, take()); diff != "" {
		t.Errorf("with a request (-want +got):\n%s", diff)
	}
}
