package bench

import (
	"context"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
)

// Metrics of the scenario bytes.
const (
	bytesPerChange  = "bytes_written_per_change"
	writesPerChange = "writes_per_change"
)

// writtenBytes measures how much is written when one GPU pod is bound, as the number of
// GPU nodes grows, and with it what is published.
func writtenBytes(ctx context.Context, r *runner, name string) error {
	var steps []step
	changes := pick(r, 10, 2)
	for _, nodes := range pick(r, []int{1, 5_000, 65_000}, []int{1, 1_000}) {
		size := server.Size{Nodes: nodes, GPUNodes: nodes, Pods: 2 * nodes, GPUPods: 2 * nodes}
		for _, w := range []who{controller, textbook} {
			what := shortCount(nodes) + " GPU nodes"
			if nodes == 1 {
				what = "1 GPU node"
			}
			steps = append(steps, step{key{Scenario: name, Size: what, Who: w, pods: size.Pods}, func(ctx context.Context) (metrics, error) {
				p, err := r.settled(ctx, w, size)
				if err != nil {
					return nil, err
				}
				defer p.stop()
				c, err := p.burst(ctx, time.Second, server.Churn{Count: changes, PerSecond: 1 / apart.Seconds(), GPUEvery: 1})
				var written int64
				for _, write := range c.writes {
					written += write.Bytes
				}
				return metrics{
					bytesPerChange:  float64(written) / float64(changes),
					writesPerChange: float64(len(c.writes)) / float64(changes),
					cpuPerPublish:   c.cpu / float64(changes),
				}, err
			}})
		}
	}
	return r.take(ctx, name, steps)
}
