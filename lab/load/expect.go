package load

import corev1 "k8s.io/api/core/v1"

// Totals is what a correct summary of the cluster says, in GPUs.
type Totals struct {
	// Requested is held by pods that are bound and not finished.
	Requested int64
	// Allocatable is what the nodes offer.
	Allocatable int64
	// Free is what nobody has requested.
	Free int64
	// Pending is asked for by pods that wait for a node.
	Pending int64
	// Naive is the sum over all pods whatever their phase: the wrong answer.
	Naive int64
	// PerNode is what is requested on each GPU node, zeros included.
	PerNode map[string]int64
}

// Expect counts the cluster without the controller's code: from the record, not
// from the API. It is the second opinion that tests and the demo compare with.
func Expect(c *Cluster, placement map[string]string) Totals {
	t := Totals{PerNode: map[string]int64{}}
	for _, n := range c.Nodes {
		if n.GPUs > 0 {
			t.Allocatable += n.GPUs
			t.PerNode[n.Name] = 0
		}
	}
	for _, p := range c.Pods {
		t.Naive += p.GPUs
		node, bound := placement[p.Name]
		switch {
		case p.GPUs == 0:
			// Would add a row for a node without GPUs.
		case p.Phase == corev1.PodPending && !bound:
			t.Pending += p.GPUs
		case p.Phase == corev1.PodRunning && bound:
			t.Requested += p.GPUs
			t.PerNode[node] += p.GPUs
		}
	}
	t.Free = t.Allocatable - t.Requested
	return t
}
