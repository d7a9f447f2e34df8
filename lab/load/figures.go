package load

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The figures below describe the cluster of the Alibaba cluster-trace-gpu-v2023
// ("openb", github.com/alibaba/clusterdata, Apache-2.0): counts and medians
// computed from openb_node_list_all_node.csv and openb_pod_list_default.csv. No
// row of the trace is here. TestFiguresMatchTheTrace computes them again.

// nodeFigures: how many nodes there are of each make.
var nodeFigures = []struct {
	cpuMilli, memoryMiB, gpus int64
	model                     string
	nodes                     int
}{
	{8000, 32768, 1, "V100M16", 19},
	{8000, 61440, 1, "P100", 3},
	{8000, 61440, 2, "P100", 2},
	{16000, 122880, 2, "P100", 107},
	{32000, 65536, 0, "", 10},
	{32000, 131072, 0, "", 23},
	{32000, 131072, 4, "V100M16", 28},
	{32000, 262144, 0, "", 129},
	{48000, 376832, 4, "V100M32", 9},
	{64000, 131072, 0, "", 4},
	{64000, 262144, 0, "", 8},
	{64000, 262144, 2, "P100", 22},
	{64000, 262144, 8, "V100M16", 7},
	{64000, 524288, 0, "", 22},
	{82000, 344064, 8, "V100M16", 1},
	{96000, 393216, 0, "", 30},
	{96000, 393216, 4, "T4", 17},
	{96000, 393216, 8, "G2", 549},
	{96000, 524288, 0, "", 59},
	{96000, 786432, 0, "", 1},
	{96000, 786432, 8, "V100M32", 21},
	{104000, 196608, 0, "", 1},
	{104000, 524288, 0, "", 20},
	{104000, 524288, 2, "T4", 387},
	{104000, 786432, 0, "", 3},
	{128000, 786432, 8, "G3", 39},
	{128000, 1048576, 1, "A10", 2},
}

// podFigures: how many pods of each size ended in each phase, with the median
// CPU and memory of those pods.
var podFigures = []struct {
	gpus                int64
	phase               corev1.PodPhase
	pods                int
	cpuMilli, memoryMiB int64
}{
	{0, corev1.PodFailed, 1, 32000, 32768},
	{0, corev1.PodPending, 36, 12500, 57344},
	{0, corev1.PodRunning, 1044, 12500, 51200},
	{0, corev1.PodSucceeded, 7, 12000, 24576},
	{1, corev1.PodFailed, 1813, 3152, 5600},
	{1, corev1.PodPending, 860, 11300, 47104},
	{1, corev1.PodRunning, 4138, 11300, 47104},
	{1, corev1.PodSucceeded, 178, 4000, 24576},
	{2, corev1.PodFailed, 9, 16200, 66560},
	{2, corev1.PodPending, 1, 16200, 66560},
	{2, corev1.PodRunning, 6, 10000, 62768},
	{4, corev1.PodFailed, 14, 32200, 132096},
	{4, corev1.PodRunning, 1, 32000, 131072},
	{8, corev1.PodFailed, 33, 88000, 327680},
	{8, corev1.PodRunning, 4, 76100, 295424},
	{8, corev1.PodSucceeded, 7, 88000, 327680},
}

// arrivalFigures: creation times at every sixteenth of the pods, in seconds.
var arrivalFigures = []int64{
	0, 10212968, 10390495, 10613648, 10736347, 10951083, 11216095, 11346580, 11516373,
	11820327, 12004493, 12168289, 12410676, 12602866, 12731529, 12820796, 12901761,
}

// LikeOpenB builds a cluster with the figures of the openb trace, for a machine
// that does not have it. All totals are the trace's; which pod has which size, and
// in what order nodes and pods come, follows from the seed alone.
func LikeOpenB(seed uint64) *Cluster {
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &Cluster{Source: fmt.Sprintf("figures of the openb trace, seed %d", seed)}
	for _, f := range nodeFigures {
		n := Node{CPUMilli: f.cpuMilli, MemoryMiB: f.memoryMiB, GPUs: f.gpus, Model: f.model}
		c.Nodes = append(c.Nodes, slices.Repeat([]Node{n}, f.nodes)...)
	}
	for _, f := range podFigures {
		p := Pod{CPUMilli: f.cpuMilli, MemoryMiB: f.memoryMiB, GPUs: f.gpus, Phase: f.phase}
		c.Pods = append(c.Pods, slices.Repeat([]Pod{p}, f.pods)...)
	}
	rng.Shuffle(len(c.Nodes), func(i, j int) { c.Nodes[i], c.Nodes[j] = c.Nodes[j], c.Nodes[i] })
	rng.Shuffle(len(c.Pods), func(i, j int) { c.Pods[i], c.Pods[j] = c.Pods[j], c.Pods[i] })
	for i := range c.Nodes {
		c.Nodes[i].Name = fmt.Sprintf("openb-node-%04d", i)
	}
	for i := range c.Pods {
		c.Pods[i].Name = fmt.Sprintf("openb-pod-%04d", i)
		c.Pods[i].Created = arrival(i, len(c.Pods))
	}
	return c
}

// arrival interpolates the creation time of the i-th of n pods.
func arrival(i, n int) int64 {
	at := float64(i) * float64(len(arrivalFigures)-1) / float64(n-1)
	k := min(int(at), len(arrivalFigures)-2)
	from, to := arrivalFigures[k], arrivalFigures[k+1]
	return from + int64((at-float64(k))*float64(to-from))
}
