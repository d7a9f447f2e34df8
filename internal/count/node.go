package count

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Node is what is kept of a v1.Node.
type Node struct {
	Name string
	UID  types.UID
	// Capacity counts all devices, Allocatable the healthy ones (N1).
	Capacity    Amounts
	Allocatable Amounts
}

// ReadNode trims a node to its record. It never changes the node.
func ReadNode(node *corev1.Node, gpus Resources) Node {
	return Node{
		Name:        node.Name,
		UID:         node.UID,
		Capacity:    amountsOf(node.Status.Capacity, gpus),
		Allocatable: amountsOf(node.Status.Allocatable, gpus),
	}
}

// HasGPUs reports whether the node has or had devices to give.
func (n *Node) HasGPUs() bool { return len(n.Capacity) > 0 || len(n.Allocatable) > 0 }

// Equal reports whether both records count alike. A heartbeat, a label or a
// condition makes no difference (N4).
func (n *Node) Equal(m *Node) bool {
	return n.Name == m.Name && n.UID == m.UID &&
		n.Capacity.Equal(m.Capacity) && n.Allocatable.Equal(m.Allocatable)
}
