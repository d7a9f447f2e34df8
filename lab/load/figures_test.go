package load

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestFiguresMatchTheTrace computes the figures again from the trace's files.
func TestFiguresMatchTheTrace(t *testing.T) {
	c, err := ReadOpenB(traceDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("nodes", func(t *testing.T) {
		want, got := map[Node]int{}, map[Node]int{}
		for _, n := range c.Nodes {
			n.Name = ""
			want[n]++
		}
		for _, f := range nodeFigures {
			got[Node{CPUMilli: f.cpuMilli, MemoryMiB: f.memoryMiB, GPUs: f.gpus, Model: f.model}] += f.nodes
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("pods", func(t *testing.T) {
		type kind struct {
			GPUs  int64
			Phase corev1.PodPhase
		}
		type figures struct {
			Pods        int
			CPU, Memory int64
		}
		cpu, memory := map[kind][]int64{}, map[kind][]int64{}
		for _, p := range c.Pods {
			k := kind{p.GPUs, p.Phase}
			cpu[k], memory[k] = append(cpu[k], p.CPUMilli), append(memory[k], p.MemoryMiB)
		}
		want, got := map[kind]figures{}, map[kind]figures{}
		for k := range cpu {
			want[k] = figures{len(cpu[k]), median(cpu[k]), median(memory[k])}
		}
		for _, f := range podFigures {
			got[kind{f.gpus, f.phase}] = figures{f.pods, f.cpuMilli, f.memoryMiB}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("arrivals", func(t *testing.T) {
		var want []int64
		for i := range arrivalFigures {
			want = append(want, c.Pods[i*(len(c.Pods)-1)/(len(arrivalFigures)-1)].Created)
		}
		if diff := cmp.Diff(want, arrivalFigures); diff != "" {
			t.Error(diff)
		}
	})
}

func median(values []int64) int64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
