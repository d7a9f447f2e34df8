package count

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
)

// Resources lists the names of the GPU resources that are counted, exactly as
// they stand in a pod's requests: "nvidia.com/gpu". Names are compared whole,
// never by prefix or substring: nvidia.com/gpumem is not a GPU (N6).
type Resources []string

// NVIDIA is the GPU resource of NVIDIA's device plugin and the one that the
// ConfigMap gpu-summary shows.
const NVIDIA = "nvidia.com/gpu"

// Pod is what is kept of a v1.Pod: enough to count it, and to say whose it is.
type Pod struct {
	Namespace string
	Name      string
	UID       types.UID
	// Node is spec.nodeName: where the pod is bound, "" while it is not.
	Node  string
	Phase corev1.PodPhase
	// Deleting is true from the moment a deletionTimestamp is set.
	Deleting bool
	// Requests is what the scheduler charges for the pod, GPU resources only.
	Requests Amounts
}

// ReadPod trims a pod to its record. It never changes the pod.
//
// The amount comes from the helper that kube-scheduler itself calls, with the
// options it uses in 1.37 (R6): sidecars, the largest init step, overhead and
// in-place resize are its business, and imitating it would be wrong sooner or
// later.
func ReadPod(pod *corev1.Pod, gpus Resources) Pod {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	return Pod{
		Namespace: pod.Namespace,
		Name:      pod.Name,
		UID:       pod.UID,
		Node:      pod.Spec.NodeName,
		Phase:     pod.Status.Phase,
		Deleting:  pod.DeletionTimestamp != nil,
		Requests:  amountsOf(requests, gpus),
	}
}

// Terminal reports whether the pod has finished. The API server is asked to
// leave such pods out, and they are left out here again: a pod that has just
// finished may still be in a cache, and no fake client honours the selector.
func (p *Pod) Terminal() bool {
	return p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed
}

// Bound reports whether the pod counts as requested on p.Node (R1). A pod that
// is being deleted still does, until it is terminal or gone (R2).
func (p *Pod) Bound() bool {
	return len(p.Requests) > 0 && p.Node != "" && !p.Terminal()
}

// Pending reports whether the pod is demand that waits for a node (P1).
func (p *Pod) Pending() bool {
	return len(p.Requests) > 0 && p.Node == "" && !p.Terminal() && !p.Deleting
}

// Equal reports whether both records count alike and belong to the same pod. A
// bound pod that goes from Pending to Running makes no difference; a pod deleted
// and created anew under its old name is another pod.
func (p *Pod) Equal(q *Pod) bool {
	return p.UID == q.UID && p.Namespace == q.Namespace && p.Name == q.Name &&
		p.Node == q.Node && p.Bound() == q.Bound() && p.Pending() == q.Pending() &&
		p.Requests.Equal(q.Requests)
}
