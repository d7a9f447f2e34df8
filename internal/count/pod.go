package count

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
)

// Pod is what is kept of a v1.Pod: enough to count it, and to say whose it is.
type Pod struct {
	Namespace string
	Name      string
	UID       types.UID
	// Node is spec.nodeName: where the pod is bound, "" while it is not.
	Node string
	// Terminal is true once the phase is Succeeded or Failed.
	Terminal bool
	// Deleting is true from the moment a deletionTimestamp is set.
	Deleting bool
	// Priority is spec.priority, 0 when there is none.
	Priority int32
	// Wait is why a pod that is not bound has no node, "" for one that is.
	Wait Wait
	// Requests is what the scheduler charges for the pod, GPU resources only.
	Requests Amounts
	// Claim names the special ResourceClaim that the scheduler made for extended
	// resources which DRA serves, "" when there is none (D2).
	Claim string
	// Served names the GPU resources of the pod that come through that claim, in
	// order.
	Served []string
}

// Wait is the reason why a pod has no node.
type Wait string

// The reasons (P1). Each waiting pod has exactly one: the first that applies.
const (
	Gated         Wait = "gated"         // spec.schedulingGates: nobody may schedule it yet
	Nominated     Wait = "nominated"     // victims are being evicted for it (R5)
	Unschedulable Wait = "unschedulable" // tried, and it fits nowhere
	Untried       Wait = "untried"       // in the queue, or its scheduler does not say
)

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
		Namespace: pod.Namespace,
		Name:      pod.Name,
		UID:       pod.UID,
		Node:      pod.Spec.NodeName,
		Terminal:  pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Deleting:  pod.DeletionTimestamp != nil,
		Wait:      waitOf(pod),
		Requests:  amountsOf(requests, names.matchOrImplicit),
	}
	if pod.Spec.Priority != nil {
		p.Priority = *pod.Spec.Priority
	}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		p.Claim, p.Served = status.ResourceClaimName, servedOf(status, names)
	}
	return p
}

func waitOf(pod *corev1.Pod) Wait {
	switch {
	case pod.Spec.NodeName != "":
		return ""
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

// Equal reports whether both records count alike and belong to the same pod. A
// bound pod that goes from Pending to Running makes no difference; a pod deleted
// and created anew under its old name is another pod.
func (p *Pod) Equal(q *Pod) bool {
	return p.UID == q.UID && p.Namespace == q.Namespace && p.Name == q.Name &&
		p.Node == q.Node && p.Bound() == q.Bound() && p.Pending() == q.Pending() &&
		p.Priority == q.Priority && p.Wait == q.Wait && p.Claim == q.Claim &&
		slices.Equal(p.Served, q.Served) && p.Requests.Equal(q.Requests)
}
