package watch

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// clusterOf has pods of usual names on usual nodes.
func clusterOf(gpuPods, otherPods, nodes int) (pods, all []k8sruntime.Object) {
	for i := range gpuPods + otherPods {
		p := gpuPod(fmt.Sprintf("train-llama-7c9f8d6b5d-%07d", i), fmt.Sprintf("ip-10-0-%03d-17.us-west-2.compute.internal", i%max(1, gpuPods/8)), 0)
		p.Namespace, p.UID, p.ResourceVersion = "team-research", "7f0c0000-3333-4444-8888-000000000000", fmt.Sprint(1000000000+i)
		if i < gpuPods {
			p = p.DeepCopy()
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{count.NVIDIA: *resource.NewQuantity(int64(1+i%8), resource.DecimalSI)},
			}}}
		}
		pods = append(pods, p)
	}
	for i := range nodes {
		all = append(all, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ip-10-1-%03d-17.us-west-2.compute.internal", i), ResourceVersion: "7"}})
	}
	return pods, all
}

// heapOf is what watching a cluster keeps of it.
func heapOf(t *testing.T, gpuPods, otherPods, nodes int) int64 {
	pods, all := clusterOf(gpuPods, otherPods, nodes)
	s := newAPIServer(t, pods, all, func(*apiServer) {})
	s.pods = nil
	before := liveHeap()
	w := s.start(&heard{})
	if world, err := w.World(); err != nil || len(world.Pods) != gpuPods {
		t.Fatalf("%d pods, %v; want %d", len(world.Pods), err, gpuPods)
	}
	kept := liveHeap() - before
	runtime.KeepAlive(w)
	s.stop()
	return kept
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestHeap: a pod without a GPU costs nothing, a pod with one a few hundred bytes.
// (The bounds leave room for what else a test keeps; docs/benchmarks.md has the
// figures.)
func TestHeap(t *testing.T) {
	const n = 20_000
	base := heapOf(t, 100, 0, 10)
	if per := float64(heapOf(t, 100, n, 10)-base) / n; per > 20 {
		t.Errorf("%.0f bytes for a pod without a GPU", per)
	} else {
		t.Logf("%.1f bytes for a pod without a GPU", per)
	}
	if per := float64(heapOf(t, n, 0, 10)-base) / n; per > 400 {
		t.Errorf("%.0f bytes for a pod with a GPU", per)
	} else {
		t.Logf("%.0f bytes for a pod with a GPU", per)
	}
	if per := float64(heapOf(t, 100, 0, n)-base) / n; per > 400 {
		t.Errorf("%.0f bytes for a node without a GPU", per)
	} else {
		t.Logf("%.0f bytes for a node without a GPU", per)
	}
}
