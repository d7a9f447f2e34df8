// Package load puts a recorded GPU cluster onto a running Kubernetes API.
//
//	ReadOpenB, LikeOpenB ─▶ Cluster ─▶ Place ─▶ placement ─▶ Apply ─▶ API server
//	                           └──────────┴────▶ Expect ─▶ Totals
//
// Everything up to Apply is arithmetic on plain values, so what the cluster
// should look like is known, and checked, before a single object exists.
package load

import corev1 "k8s.io/api/core/v1"

// PodsPerNode is the pod capacity every node is given. The trace does not tell;
// 110 is the kubelet's default and ample: the fullest node of the trace holds
// 12 pods at once.
const PodsPerNode = 110

// Cluster is a recorded cluster: nodes and pods in the order of the record.
type Cluster struct {
	// Source says where the cluster comes from, for people.
	Source string
	Nodes  []Node
	Pods   []Pod
}

// Node is a machine of the record.
type Node struct {
	Name      string
	CPUMilli  int64
	MemoryMiB int64
	GPUs      int64
	// Model is the GPU product, empty on a node without GPUs.
	Model string
}

// Pod is a workload of the record. It has one container and asks for whole GPUs.
type Pod struct {
	Name      string
	CPUMilli  int64
	MemoryMiB int64
	GPUs      int64
	Phase     corev1.PodPhase
	// Created is the arrival, in seconds since the record began.
	Created int64
}
