package publish

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// BenchmarkUnchanged is what a pass costs that finds nothing to write, once it is
// counted: rendering all rows and comparing them with what is there.
func BenchmarkUnchanged(b *testing.B) { benchmark(b, 0) }

// BenchmarkOneChange is the same with another number on one node each time.
func BenchmarkOneChange(b *testing.B) { benchmark(b, 1) }

func benchmark(b *testing.B, changes int64) {
	for _, nodes := range []int{5_000, 65_000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			s := newServer()
			cache := &watched{server: s}
			p := New(s, Options{Namespace: "ns", Name: "gpu-summary", CapacityName: "gpu-capacity"}, cache)
			requested := map[string]int64{}
			for i := range nodes {
				requested[fmt.Sprintf("gpu-%s-%06d", strings.Repeat("x", 40), i)] = int64(i % 9)
			}
			snap := count.Take(world(requested))
			if _, err := p.Publish(b.Context(), snap); err != nil {
				b.Fatal(err)
			}
			cache.sync()
			s.bytes = 0
			b.ReportAllocs()
			for b.Loop() {
				snap.Rows[nodes/2].Requested += changes
				if _, err := p.Publish(b.Context(), snap); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.bytes)/float64(b.N), "written-bytes/op")
			b.ReportMetric(float64(len(s.objects)), "objects")
		})
	}
}
