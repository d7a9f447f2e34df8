package load

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// room is what is left on a node.
type room struct{ cpuMilli, memoryMiB, gpus, pods int64 }

func (r *room) fits(p *Pod) bool {
	return p.CPUMilli <= r.cpuMilli && p.MemoryMiB <= r.memoryMiB && p.GPUs <= r.gpus && r.pods > 0
}

func (r *room) take(p *Pod) {
	r.cpuMilli -= p.CPUMilli
	r.memoryMiB -= p.MemoryMiB
	r.gpus -= p.GPUs
	r.pods--
}

// Place gives every pod that ever ran a node, since the record does not say
// which it was: in order of arrival, the first node with enough CPU, memory,
// GPUs and room for a pod. Running pods keep what they take; Failed and Succeeded
// ones give it back at once; Pending ones get no node. The error names the pods
// that fit nowhere.
func Place(c *Cluster) (map[string]string, error) {
	left := make([]room, len(c.Nodes))
	for i, n := range c.Nodes {
		left[i] = room{cpuMilli: n.CPUMilli, memoryMiB: n.MemoryMiB, gpus: n.GPUs, pods: PodsPerNode}
	}
	placement := make(map[string]string, len(c.Pods))
	var homeless []string
	for _, p := range arrivals(c) {
		if p.Phase == corev1.PodPending {
			continue
		}
		i := slices.IndexFunc(left, func(r room) bool { return r.fits(p) })
		if i < 0 {
			homeless = append(homeless, fmt.Sprintf("%s (%dm cpu, %d MiB, %d GPUs)", p.Name, p.CPUMilli, p.MemoryMiB, p.GPUs))
			continue
		}
		placement[p.Name] = c.Nodes[i].Name
		if p.Phase == corev1.PodRunning {
			left[i].take(p)
		}
	}
	if len(homeless) > 0 {
		return nil, fmt.Errorf("place pods: %d fit on no node: %s", len(homeless), shorten(homeless))
	}
	return placement, nil
}

// arrivals are the pods by creation time; pods of the same second keep their order.
func arrivals(c *Cluster) []*Pod {
	pods := make([]*Pod, len(c.Pods))
	for i := range c.Pods {
		pods[i] = &c.Pods[i]
	}
	slices.SortStableFunc(pods, func(a, b *Pod) int { return cmp.Compare(a.Created, b.Created) })
	return pods
}

// shorten keeps an error readable when it has thousands of things to name.
func shorten(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
