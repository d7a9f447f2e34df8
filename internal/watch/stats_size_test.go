package watch

import (
	"runtime"
	"testing"
)

// TestSizeIsAboutThatOfTheHeap: what is said to be kept is, within a third, what the
// heap grows by for pods with GPUs and for nodes without.
func TestSizeIsAboutThatOfTheHeap(t *testing.T) {
	const n = 20_000
	measure := func(gpuPods, nodes int) (heap, pods, bare int64) {
		objects, all := clusterOf(gpuPods, 0, nodes)
		s := newAPIServer(t, objects, all, func(*apiServer) {})
		s.pods = nil
		before := liveHeap()
		w := s.start(&heard{})
		heap = liveHeap() - before
		for _, stats := range w.Stats() {
			switch stats.Resource {
			case "pods":
				pods = stats.KeptBytes
			case "nodes":
				bare = stats.KeptBytes
			}
		}
		runtime.KeepAlive(w)
		s.stop()
		return heap, pods, bare
	}
	base, _, _ := measure(100, 10)
	check := func(what string, heap, estimate int64) {
		t.Logf("%s: %d bytes each, estimated %d", what, heap/n, estimate/n)
		if estimate < heap*2/3 || estimate > heap*4/3 {
			t.Errorf("%s take %d bytes each, and are estimated at %d", what, heap/n, estimate/n)
		}
	}
	heap, estimate, _ := measure(n, 10)
	check("pods", heap-base, estimate)
	heap, _, estimate = measure(100, n)
	check("nodes", heap-base, estimate)
}

// BenchmarkSizeOf is what a reader of the numbers costs for 100,000 pods with GPUs.
func BenchmarkSizeOf(b *testing.B) {
	objects := make([]any, 100_000)
	for i := range objects {
		objects[i] = &podRecord{resourceVersion: "1000000"}
	}
	for b.Loop() {
		sizeOf(objects)
	}
}
