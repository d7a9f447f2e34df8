package count

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Node is what is kept of a v1.Node.
type Node struct {
	Name string
	// Capacity counts all devices, Allocatable the healthy ones (N1).
	Capacity    Amounts
	Allocatable Amounts
	// States is why free devices cannot be had (N3), in the order of the
	// constants; empty for a node that takes pods.
	States []State
	// Labels are the few that say something about devices: product and replicas.
	Labels []Label
}

// State is something about a node that keeps new pods away.
type State string

// The states, named as kubectl get nodes names them.
const (
	NotReady           State = "NotReady"           // the Ready condition is not True
	SchedulingDisabled State = "SchedulingDisabled" // cordoned
	Tainted            State = "Tainted"            // NoSchedule or NoExecute, and not the GPU's own taint
)

// Label is one label of a node.
type Label struct{ Key, Value string }

// UnknownModel is the model of devices whose vendor's label is missing (N4).
const UnknownModel = "unknown"

// productLabels say, by the domain of the resource, which label names the model.
var productLabels = map[string]string{
	"nvidia.com":    "nvidia.com/gpu.product",
	"amd.com":       "amd.com/gpu.product-name",
	"gpu.intel.com": "gpu.intel.com/product",
	"habana.ai":     "habana.ai/product",
	"google.com":    "cloud.google.com/gke-tpu-accelerator",
	// Neuron's plugin has no such label; there the type of the instance is the model.
	"aws.amazon.com": corev1.LabelInstanceTypeStable,
}

const replicasSuffix = ".replicas"

// KeepsLabel reports whether ReadNode may keep a label of this key.
func (Names) KeepsLabel(key string) bool {
	if strings.HasSuffix(key, replicasSuffix) {
		return true
	}
	for _, product := range productLabels {
		if key == product {
			return true
		}
	}
	return false
}

// ReadNode trims a node to its record. It never changes the node.
func ReadNode(node *corev1.Node, names Names) Node {
	n := Node{
		Name:        node.Name,
		Capacity:    amountsOf(node.Status.Capacity, names.Match),
		Allocatable: amountsOf(node.Status.Allocatable, names.Match),
		States:      statesOf(node, names),
	}
	for _, key := range productLabels {
		n.keepLabel(node, key)
	}
	for _, amount := range n.Capacity {
		n.keepLabel(node, amount.Resource+replicasSuffix)
	}
	slices.SortFunc(n.Labels, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
	return n
}

func (n *Node) keepLabel(node *corev1.Node, key string) {
	if value := node.Labels[key]; value != "" {
		n.Labels = append(n.Labels, Label{key, value})
	}
}

func (n *Node) label(key string) string {
	for _, l := range n.Labels {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// Model names the devices behind a resource of this node.
func (n *Node) Model(resource string) string {
	domain, _, _ := strings.Cut(resource, "/")
	if model := n.label(productLabels[domain]); model != "" {
		return model
	}
	return UnknownModel
}

// Replicas is how many slots of the resource share one device, 1 when devices are
// not shared (N5). Of such a resource everything counts slots.
func (n *Node) Replicas(resource string) int64 {
	replicas, err := strconv.ParseInt(n.label(resource+replicasSuffix), 10, 64)
	if err != nil || replicas < 1 {
		return 1
	}
	return replicas
}

// HasDevices reports whether the node has any, or had some that turned unhealthy.
func (n *Node) HasDevices() bool { return len(n.Capacity) > 0 || len(n.Allocatable) > 0 }

// Usable reports whether the node takes new pods (N3).
func (n *Node) Usable() bool { return len(n.States) == 0 }

func statesOf(node *corev1.Node, names Names) []State {
	ready, cordoned, tainted := false, node.Spec.Unschedulable, false
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			ready = c.Status == corev1.ConditionTrue
		}
	}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		switch {
		case taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute:
		case names.Match(taint.Key): // pods that ask for the GPU tolerate it
		// Some taints only repeat what the node says elsewhere. They may come
		// earlier or stay longer, and are what the scheduler goes by.
		case taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable:
			ready = false
		case taint.Key == corev1.TaintNodeUnschedulable:
			cordoned = true
		default:
			tainted = true
		}
	}
	var states []State
	if !ready {
		states = append(states, NotReady)
	}
	if cordoned {
		states = append(states, SchedulingDisabled)
	}
	if tainted {
		states = append(states, Tainted)
	}
	return states
}

// Equal reports whether both records count alike. A heartbeat, a condition of
// another kind or a label that says nothing of devices makes no difference (N4).
func (n *Node) Equal(m *Node) bool {
	return n.Name == m.Name &&
		n.Capacity.Equal(m.Capacity) && n.Allocatable.Equal(m.Allocatable) &&
		slices.Equal(n.States, m.States) && slices.Equal(n.Labels, m.Labels)
}
