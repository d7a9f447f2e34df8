package bench

import (
	"context"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
)

// Metrics of the scenario heap.
const (
	heapPerPlainPod = "heap_bytes_per_plain_pod"
	heapPerGPUPod   = "heap_bytes_per_gpu_pod"
)

// heap measures the live heap with no pods, with pods without GPUs, and with GPU pods on half of the nodes
// and on all, the nodes being the same: what differs is the pods', and a digit of what is published. There are
// so many that a few megabytes which a controller happens to hold at the time say little about one.
func heap(ctx context.Context, r *runner, name string) error {
	plain, gpus := pick(r, 1_000_000, 200_000), pick(r, 160_000, 16_000)
	var steps []step
	for _, w := range []who{controller, textbook} {
		if w == textbook { // whose pods are large enough to be seen among fewer
			plain, gpus = 40_000, min(gpus, 80_000)
		}
		nodes := gpus / 4
		sizes := []server.Size{
			{Nodes: nodes, GPUNodes: nodes},
			{Nodes: nodes, GPUNodes: nodes, Pods: plain},
			{Nodes: nodes, GPUNodes: nodes, Pods: gpus / 2, GPUPods: gpus / 2},
			{Nodes: nodes, GPUNodes: nodes, Pods: gpus, GPUPods: gpus},
		}
		steps = append(steps, step{
			key{Scenario: name, Size: shortCount(nodes) + " GPU nodes", Who: w, pods: plain},
			func(ctx context.Context) (metrics, error) {
				var live [4]float64
				for i, size := range sizes {
					var err error
					if live[i], err = r.heapAt(ctx, w, size); err != nil {
						return nil, err
					}
				}
				return metrics{
					heapBytes:       live[0],
					heapPerPlainPod: (live[1] - live[0]) / float64(sizes[1].Pods),
					heapPerGPUPod:   (live[3] - live[2]) / float64(sizes[3].Pods-sizes[2].Pods),
				}, nil
			},
		})
	}
	return r.take(ctx, name, steps)
}

func (r *runner) heapAt(ctx context.Context, w who, size server.Size) (float64, error) {
	p, err := r.settled(ctx, w, size)
	if err != nil {
		return 0, err
	}
	defer p.stop()
	return p.heap(ctx)
}
