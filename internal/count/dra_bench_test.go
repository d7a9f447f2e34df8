package count_test

import (
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/count/selector"
)

// BenchmarkDRA is a pass over many nodes of eight devices, half of them in use:
// the first, which evaluates all selectors, and one like all others.
func BenchmarkDRA(b *testing.B) {
	for _, nodes := range []int{1_000, 65_000} {
		o := objects{classes: []*resourcev1.DeviceClass{
			class(driver, count.NVIDIA, wholeGPUs), class("mig.nvidia.com", "", migGPUs), class("nic", "", `device.driver == "nic.example.com"`),
		}}
		for i := range nodes {
			name := fmt.Sprintf("gpu-node-%05d", i)
			o.nodes = append(o.nodes, node(name, "0", "0"))
			o.slices = append(o.slices, offers(name, 8))
			o.claims = append(o.claims, holds("c-"+name, name+"/gpu-0", name+"/gpu-1", name+"/gpu-2", name+"/gpu-3"))
		}
		w := o.world()
		b.Run(fmt.Sprintf("nodes=%d/first", nodes), func(b *testing.B) {
			for b.Loop() {
				w.DRA.Selectors = &selector.Cache{}
				count.Take(w)
			}
		})
		b.Run(fmt.Sprintf("nodes=%d/next", nodes), func(b *testing.B) {
			w.DRA.Selectors = &selector.Cache{}
			count.Take(w)
			for b.Loop() {
				count.Take(w)
			}
		})
	}
}
