package fit

import (
	"hash/maphash"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Facts is what a scheduler goes by, apart from devices. It is filled by being told of
// objects one by one, in any order (gather.Visitor), and keeps little of each.
type Facts struct {
	names count.Names
	// keepPods is whether any question looks at the labels of other pods.
	keepPods bool

	// seen has a hash of each pod that was told of: a dump may have it twice.
	seen map[uint64]struct{}
	seed maphash.Seed

	nodes map[string]*node
	usage map[string]*usage // by node, which may come later, or never
	pods  []pod             // bound and not finished
	// repelling are the required anti-affinity terms of bound pods: they keep a copy
	// away, whatever the copy itself asks for.
	repelling []repelling
	// offered names the extended resources that a DeviceClass stands for (D1).
	offered map[string]bool
	// unread counts bound pods whose anti-affinity cannot be read. No API server
	// stores such a pod.
	unread int
}

// node is what is kept of a node: a v1.Node of the few fields that are looked at.
type node struct {
	*corev1.Node
	allocatable amounts
}

// usage is what bound pods take on a node. GPUs are not in it: those are the
// Snapshot's business.
type usage struct {
	requested amounts
	pods      int64
	ports     fwk.HostPortInfo
}

type pod struct {
	namespace string
	labels    map[string]string
	node      string
	deleting  bool
}

type repelling struct {
	term fwk.AffinityTerm
	node string
}

// NewFacts makes facts for questions that are known beforehand: what none of them
// looks at is not kept. Without questions everything is. names says which resources
// are GPUs.
func NewFacts(names count.Names, questions ...Question) *Facts {
	return &Facts{
		names:    names,
		keepPods: len(questions) == 0 || slices.ContainsFunc(questions, looksAtPods),
		seen:     make(map[uint64]struct{}), seed: maphash.MakeSeed(),
		nodes: make(map[string]*node), usage: make(map[string]*usage), offered: make(map[string]bool),
	}
}

func looksAtPods(q Question) bool {
	if q.Pod == nil {
		return false
	}
	a := q.Pod.Spec.Affinity
	return len(q.Pod.Spec.TopologySpreadConstraints) > 0 || a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)
}

// Node takes note of a node.
func (f *Facts) Node(n *corev1.Node) {
	kept := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	kept.Spec.Taints, kept.Spec.Unschedulable = n.Spec.Taints, n.Spec.Unschedulable
	f.nodes[n.Name] = &node{Node: kept, allocatable: amountsOf(n.Status.Allocatable)}
}

// Pod takes note of a pod if it takes part of a node: if it is bound and has not
// finished (R1, R2).
func (f *Facts) Pod(p *corev1.Pod) {
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	id := maphash.String(f.seed, p.Namespace+"/"+p.Name)
	if _, told := f.seen[id]; told {
		return
	}
	f.seen[id] = struct{}{}
	u := f.usage[p.Spec.NodeName]
	if u == nil {
		u = &usage{requested: make(amounts), ports: make(fwk.HostPortInfo)}
		f.usage[p.Spec.NodeName] = u
	}
	u.pods++
	u.requested.add(f.withoutGPUs(requestsOf(p)))
	for _, port := range hostPorts(&p.Spec) {
		u.ports.Add(port.HostIP, string(port.Protocol), port.HostPort)
	}
	if f.keepPods {
		f.pods = append(f.pods, pod{namespace: p.Namespace, labels: p.Labels, node: p.Spec.NodeName, deleting: p.DeletionTimestamp != nil})
	}
	terms, err := fwk.GetAffinityTerms(p, fwk.GetPodAntiAffinityTerms(p.Spec.Affinity))
	if err != nil {
		f.unread++
	}
	for _, term := range terms {
		f.repelling = append(f.repelling, repelling{term, p.Spec.NodeName})
	}
}

// DeviceClass takes note of the extended resource that a class stands for.
func (f *Facts) DeviceClass(c *resourcev1.DeviceClass) {
	if c.Spec.ExtendedResourceName != nil {
		f.offered[*c.Spec.ExtendedResourceName] = true
	}
}

// ResourceSlice has nothing that the Snapshot does not have.
func (*Facts) ResourceSlice(*resourcev1.ResourceSlice) {}

// ResourceClaim has nothing that the Snapshot does not have.
func (*Facts) ResourceClaim(*resourcev1.ResourceClaim) {}

// requestsOf is what the scheduler charges for a pod, by the helper and with the
// options it uses itself (R6). Of a pod without a status it is what the spec says.
func requestsOf(p *corev1.Pod) amounts {
	return amountsOf(resource.PodRequests(p, resource.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}))
}

func (f *Facts) withoutGPUs(a amounts) amounts {
	for name := range a {
		if f.names.Match(string(name)) {
			delete(a, name)
		}
	}
	return a
}

// hostPorts are the ports of the node that a pod takes for as long as it runs: those
// of its containers and sidecars, not those of init steps.
func hostPorts(spec *corev1.PodSpec) (ports []corev1.ContainerPort) {
	take := func(c *corev1.Container) {
		for _, port := range c.Ports {
			if port.HostPort > 0 {
				ports = append(ports, port)
			}
		}
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			take(c)
		}
	}
	for i := range spec.Containers {
		take(&spec.Containers[i])
	}
	return ports
}
