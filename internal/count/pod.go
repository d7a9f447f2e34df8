package count

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// Pod is what is kept of a v1.Pod: enough to count it, and to say whose it is. There
// may be a million of them, so it is 72 bytes large, and what few pods have is
// behind a pointer. It has no UID: a pod that was deleted and created anew under
// its old name counts as what it asks for, like any other.
type Pod struct {
	// Key is "namespace/name".
	Key string
	// Node is spec.nodeName: where the pod is bound, "" while it is not.
	Node string
	// Requests is what the scheduler charges for the pod, GPU resources only.
	Requests Amounts
	// More is what few pods have, nil for most.
	More *PodMore
	// Priority is spec.priority, 0 when there is none.
	Priority int32
	// Wait is why a pod that is not bound has no node, 0 for one that is.
	Wait Wait
	// Terminal is true once the phase is Succeeded or Failed.
	Terminal bool
	// Deleting is true from the moment a deletionTimestamp is set.
	Deleting bool
}

// PodMore is the part of a Pod that most have nothing in.
type PodMore struct {
	// Claim is what DRA serves of the pod, nil for nothing (D2).
	Claim *PodClaim
	// Models are the product labels one of which the node has to have, in order; empty
	// if any will do, and for a pod that has a node (P2).
	Models []Label
}

// PodClaim is the special ResourceClaim that the scheduler made for extended
// resources of a pod which DRA serves.
type PodClaim struct {
	Name string
	// Resources names the GPU resources that come through it, in order.
	Resources []string
}

// Wait is the reason why a pod has no node.
type Wait uint8

// The reasons (P1). Each waiting pod has exactly one: the first that applies.
const (
	Gated         Wait = iota + 1 // spec.schedulingGates: nobody may schedule it yet
	Nominated                     // victims are being evicted for it (R5)
	Unschedulable                 // tried, and it fits nowhere
	Untried                       // in the queue, or its scheduler does not say
)

var waitNames = [...]string{Gated: "gated", Nominated: "nominated", Unschedulable: "unschedulable", Untried: "untried"}

// String is the reason's name as it is published, "" for 0.
func (w Wait) String() string { return waitNames[w] }

// MarshalText makes the name stand for the reason in JSON.
func (w Wait) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads a name. One that is not known, of a later version, is no reason
// and no error: readers ignore what they do not know.
func (w *Wait) UnmarshalText(name []byte) error {
	*w = Wait(max(0, slices.Index(waitNames[:], string(name))))
	return nil
}

// Waits lists the reasons in the order in which they are shown.
var Waits = []Wait{Unschedulable, Untried, Gated, Nominated}

// ReadPod trims a pod to its record. It never changes the pod.
//
// The amount comes from the helper that kube-scheduler itself calls, with the
// options it uses in 1.37 (R6): sidecars, the largest init step, overhead and
// in-place resize are its business, and imitating it would be wrong sooner or
// later.
func ReadPod(pod *corev1.Pod, names Names) Pod {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	p := Pod{
		Key:      pod.Namespace + "/" + pod.Name,
		Node:     pod.Spec.NodeName,
		Terminal: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Deleting: pod.DeletionTimestamp != nil,
		Wait:     waitOf(pod),
		Requests: amountsOf(requests, names.matchOrImplicit),
	}
	if pod.Spec.Priority != nil {
		p.Priority = *pod.Spec.Priority
	}
	var claim *PodClaim
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		claim = &PodClaim{Name: status.ResourceClaimName, Resources: servedOf(status, names)}
	}
	var models []Label
	if p.Node == "" {
		models = modelsOf(&pod.Spec)
	}
	if claim != nil || models != nil {
		p.More = &PodMore{claim, models}
	}
	return p
}

func waitOf(pod *corev1.Pod) Wait {
	switch {
	case pod.Spec.NodeName != "":
		return 0
	case len(pod.Spec.SchedulingGates) > 0:
		return Gated
	case pod.Status.NominatedNodeName != "":
		return Nominated
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return Unschedulable
		}
	}
	return Untried
}

// Bound reports whether the pod counts as requested on p.Node (R1). A pod that
// is being deleted still does, until it is terminal or gone (R2).
//
// The API server is asked to leave terminal pods out, and they are left out here
// again: a pod that has just finished may still be in a cache, and no fake client
// honours the selector.
func (p *Pod) Bound() bool {
	return len(p.Requests) > 0 && p.Node != "" && !p.Terminal
}

// Pending reports whether the pod is demand that waits for a node (P1).
func (p *Pod) Pending() bool {
	return len(p.Requests) > 0 && p.Node == "" && !p.Terminal && !p.Deleting
}

// Namespace is where the pod is.
func (p *Pod) Namespace() string {
	namespace, _, _ := strings.Cut(p.Key, "/")
	return namespace
}

// Equal reports whether both records count alike. A bound pod that goes from
// Pending to Running makes no difference.
func (p *Pod) Equal(q *Pod) bool {
	return p.Key == q.Key && p.Node == q.Node && p.Bound() == q.Bound() && p.Pending() == q.Pending() &&
		p.Priority == q.Priority && p.Wait == q.Wait && p.Requests.Equal(q.Requests) &&
		p.Claim().equal(q.Claim()) && slices.Equal(p.models(), q.models())
}

// Claim is what DRA serves of the pod, nil for nothing (D2).
func (p *Pod) Claim() *PodClaim {
	if p.More == nil {
		return nil
	}
	return p.More.Claim
}

func (p *Pod) models() []Label {
	if p.More == nil {
		return nil
	}
	return p.More.Models
}

func (c *PodClaim) equal(d *PodClaim) bool {
	if c == nil || d == nil {
		return c == d
	}
	return c.Name == d.Name && slices.Equal(c.Resources, d.Resources)
}
