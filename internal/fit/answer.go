package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conclude fills in what the places say.
func (a *Answer) conclude(places []*place) {
	slices.SortStableFunc(places, func(p, q *place) int { return strings.Compare(p.node, q.node) })
	a.Placements, a.Nodes, a.Notes = []Placement{}, []Node{}, slices.Concat([]string{}, a.Notes)
	for _, p := range places {
		if last := len(a.Placements) - 1; last >= 0 && a.Placements[last].Node == p.node {
			a.Placements[last].Copies += p.copies
		} else if p.copies > 0 {
			a.Placements = append(a.Placements, Placement{Node: p.node, Copies: p.copies})
		}
		a.Placed += p.copies
		if len(p.obstacles) == 0 || p.obstacles[0].reason != NoDevices {
			a.Nodes = append(a.Nodes, p.answer(a.Devices))
		}
	}
	slices.SortStableFunc(a.Placements, func(p, q Placement) int { return cmp.Compare(q.Copies, p.Copies) })
	a.Refusals = sumUp(places, a.Devices)
}

func (p *place) answer(devices int64) Node {
	n := Node{Node: p.node, Free: p.free, Allocatable: p.allocatable, Copies: p.copies, Reasons: []Reason{}, Message: p.message(devices)}
	if p.bin != nil {
		n.Model, n.Source = p.bin.Model, p.bin.Source
	}
	for i := range p.obstacles {
		if r := p.obstacles[i].reason; !slices.Contains(n.Reasons, r) {
			n.Reasons = append(n.Reasons, r)
		}
	}
	return n
}

// notes says what of the cluster the answer leaves out. What the snapshot leaves out it
// says itself.
func (c *cluster) notes(a *Answer) (out []string) {
	if a.Placed > 0 && a.Resource != "" {
		if p := c.snap.Of(a.Resource).Pending; p.Pods > 0 {
			out = append(out, fmt.Sprintf("%s for %d %s and may take the room first", plural(int64(p.Pods), "pod waits", "pods wait"), p.Devices, a.Resource))
		}
	}
	if c.facts.unread > 0 {
		out = append(out, fmt.Sprintf("the anti-affinity of %s cannot be read and is not judged", plural(int64(c.facts.unread), "pod", "pods")))
	}
	return out
}

// claimsOf names what a pod asks of DRA that decides where it fits, and that nothing here
// knows of: its claims, classes by their implicit resource names, and resources other
// than GPUs that a class stands for.
func (c *cluster) claimsOf(p *corev1.Pod) (names []string) {
	if p == nil {
		return nil
	}
	for _, claim := range p.Spec.ResourceClaims {
		names = append(names, claim.Name)
	}
	for name := range requestsOf(p) {
		class, implicit := strings.CutPrefix(string(name), implicitPrefix)
		if implicit || c.facts.offered[string(name)] && !c.facts.names.Match(string(name)) {
			names = append(names, class)
		}
	}
	slices.Sort(names)
	return names
}

// limits says what of a pod is not judged.
func limits(p *corev1.Pod, claims []string) (out []string) {
	if p == nil {
		return nil
	}
	spec := &p.Spec
	if len(claims) > 0 {
		out = append(out, "claims for devices are not judged: "+strings.Join(claims, ", "))
	}
	if volumes := volumesOf(spec); len(volumes) > 0 {
		out = append(out, "volumes are not judged, and may tie the pod to a zone or a node: "+strings.Join(volumes, ", "))
	}
	if spec.NodeName != "" {
		out = append(out, "the pod is for node "+spec.NodeName+": no scheduler looks at it")
	}
	if len(spec.SchedulingGates) > 0 {
		out = append(out, "the pod has scheduling gates: nothing places it before they are removed")
	}
	if name := spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName {
		out = append(out, "scheduler "+name+" places it, which may go by other rules")
	}
	if spec.PriorityClassName != "" || spec.Priority != nil && *spec.Priority > 0 {
		out = append(out, "the pod has a priority: what could be evicted for it is not considered")
	}
	if spec.RuntimeClassName != nil && spec.Overhead == nil {
		out = append(out, "overhead and node selector of runtime class "+*spec.RuntimeClassName+" are not known")
	}
	if selectsNamespaces(spec.Affinity) {
		out = append(out, "labels of namespaces are not read: a namespaceSelector is judged by the name of the namespace alone")
	}
	return out
}

func volumesOf(spec *corev1.PodSpec) (names []string) {
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			names = append(names, v.Name)
		}
	}
	return names
}

// selectsNamespaces reports whether a required term selects namespaces by more than
// their name.
func selectsNamespaces(a *corev1.Affinity) bool {
	var terms []corev1.PodAffinityTerm
	if a != nil && a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	if a != nil && a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return byLabel(t.NamespaceSelector) })
}

func byLabel(s *metav1.LabelSelector) bool {
	if s == nil {
		return false
	}
	for key := range s.MatchLabels {
		if key != corev1.LabelMetadataName {
			return true
		}
	}
	return slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key != corev1.LabelMetadataName })
}
