package diff

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// feature is something a pod can have that a counter can get wrong. Features are
// read off the finished pod, not noted while it is made: the generator cannot claim
// what it does not do.
type feature struct {
	name string
	has  func(*corev1.Pod) bool
}

var features = slices.Concat(containerFeatures, lifeFeatures, statusFeatures, amountFeatures)

var containerFeatures = []feature{
	{"no container", func(p *corev1.Pod) bool { return len(p.Spec.Containers) == 0 }},
	{"several containers", func(p *corev1.Pod) bool { return len(p.Spec.Containers) > 1 }},
	{"containers of one name", sameName},
	{"init step", func(p *corev1.Pod) bool { return hasInit(p, false) }},
	{"sidecar", func(p *corev1.Pod) bool { return hasInit(p, true) }},
	{"init step after a sidecar", func(p *corev1.Pod) bool { return initPair(p, true) }},
	{"sidecar after an init step", func(p *corev1.Pod) bool { return initPair(p, false) }},
	{"restartPolicy of a container", func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.RestartPolicy != nil })
	}},
	{"ephemeral container", func(p *corev1.Pod) bool { return len(p.Spec.EphemeralContainers) > 0 }},
	{"overhead", func(p *corev1.Pod) bool { return len(p.Spec.Overhead) > 0 }},
	{"pod-level resources", func(p *corev1.Pod) bool { return p.Spec.Resources != nil }},
	{"pod-level GPU", func(p *corev1.Pod) bool { return p.Spec.Resources != nil && asksGPU(p.Spec.Resources.Requests) }},
	{"limits without requests", func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
			return asksGPU(c.Resources.Limits) && len(c.Resources.Requests) == 0
		})
	}},
}

var lifeFeatures = []feature{
	{"phase empty", inPhase("")},
	{"phase Pending", inPhase(corev1.PodPending)},
	{"phase Running", inPhase(corev1.PodRunning)},
	{"phase Succeeded", inPhase(corev1.PodSucceeded)},
	{"phase Failed", inPhase(corev1.PodFailed)},
	{"phase Unknown", inPhase(corev1.PodUnknown)},
	{"being deleted", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }},
	{"not bound", func(p *corev1.Pod) bool { return p.Spec.NodeName == "" }},
	{"nominated", func(p *corev1.Pod) bool { return p.Spec.NodeName == "" && p.Status.NominatedNodeName != "" }},
	{"nominated elsewhere, bound", func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && p.Status.NominatedNodeName != "" && p.Status.NominatedNodeName != p.Spec.NodeName
	}},
	{"node does not exist", func(p *corev1.Pod) bool { return strings.HasPrefix(p.Spec.NodeName, gonePrefix) }},
	{"another scheduler's", func(p *corev1.Pod) bool { return p.Spec.SchedulerName != "" }},
	{"gated", func(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }},
}

var statusFeatures = []feature{
	{"container allocated", anyStatus(func(s corev1.ContainerStatus) bool { return asksGPU(s.AllocatedResources) })},
	{"container in effect", anyStatus(func(s corev1.ContainerStatus) bool { return s.Resources != nil && asksGPU(s.Resources.Requests) })},
	{"status without resources", anyStatus(func(s corev1.ContainerStatus) bool { return s.Resources == nil && s.AllocatedResources == nil })},
	{"status of an init container", func(p *corev1.Pod) bool { return len(p.Status.InitContainerStatuses) > 0 }},
	{"resize deferred", hasCondition(corev1.PodResizePending, corev1.PodReasonDeferred)},
	{"resize infeasible", hasCondition(corev1.PodResizePending, corev1.PodReasonInfeasible)},
	{"resize in progress", hasCondition(corev1.PodResizeInProgress, "")},
	{"pod allocated", func(p *corev1.Pod) bool { return p.Status.Resources == nil && p.Status.AllocatedResources != nil }},
	{"pod in effect", func(p *corev1.Pod) bool { return p.Status.Resources != nil && p.Status.AllocatedResources == nil }},
	{"pod allocated and in effect", func(p *corev1.Pod) bool { return p.Status.Resources != nil && p.Status.AllocatedResources != nil }},
	{"served through a claim", func(p *corev1.Pod) bool { return p.Status.ExtendedResourceClaimStatus != nil }},
	{"node-allocatable claim", func(p *corev1.Pod) bool { return len(p.Status.NodeAllocatableResourceClaimStatuses) > 0 }},
}

var amountFeatures = []feature{
	{"zero", amount(func(q resource.Quantity) bool { return q.IsZero() })},
	{"fraction", amount(func(q resource.Quantity) bool { return q.MilliValue()%1000 != 0 && q.Value() < math.MaxInt64/1000 })},
	{"negative", amount(func(q resource.Quantity) bool { return q.Sign() < 0 })},
	{"close to 64 bits", amount(func(q resource.Quantity) bool { return q.CmpInt64(1<<62) >= 0 && q.CmpInt64(math.MaxInt64) <= 0 })},
	{"beyond 64 bits", amount(func(q resource.Quantity) bool { return q.CmpInt64(math.MaxInt64) > 0 })},
	{"binary suffix", amount(func(q resource.Quantity) bool { return q.Format == resource.BinarySI })},
	{"exponent", amount(func(q resource.Quantity) bool { return q.Format == resource.DecimalExponent })},
	{"several GPU resources", func(p *corev1.Pod) bool { return namesIn(p, gpus) > 1 }},
	{"MIG", func(p *corev1.Pod) bool { return namesIn(p, gpus[2:6]) > 0 }},
	{"another vendor's", func(p *corev1.Pod) bool { return namesIn(p, gpus[6:]) > 0 }},
	{"look-alike", func(p *corev1.Pod) bool { return namesIn(p, lookAlikes) > 0 }},
	{"no GPU at all", func(p *corev1.Pod) bool { return namesIn(p, gpus) == 0 }},
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Status.Phase == phase }
}

func hasCondition(kind corev1.PodConditionType, reason string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Reason == reason })
	}
}

func anyStatus(ok func(corev1.ContainerStatus) bool) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.ContainerStatuses, ok) || slices.ContainsFunc(p.Status.InitContainerStatuses, ok)
	}
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func hasInit(p *corev1.Pod, sidecar bool) bool {
	for i := range p.Spec.InitContainers {
		if isSidecar(&p.Spec.InitContainers[i]) == sidecar {
			return true
		}
	}
	return false
}

// initPair reports whether the first of two neighbours is a sidecar, or not, and
// the second the contrary.
func initPair(p *corev1.Pod, first bool) bool {
	for i := 1; i < len(p.Spec.InitContainers); i++ {
		if isSidecar(&p.Spec.InitContainers[i-1]) == first && isSidecar(&p.Spec.InitContainers[i]) != first {
			return true
		}
	}
	return false
}

func sameName(p *corev1.Pod) bool {
	seen := map[string]bool{}
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			if seen[list[i].Name] {
				return true
			}
			seen[list[i].Name] = true
		}
	}
	return false
}

func asksGPU(list corev1.ResourceList) bool {
	for name := range list {
		if isGPU[name] {
			return true
		}
	}
	return false
}

// requests are the lists of requests of the containers.
func requests(p *corev1.Pod) (out []corev1.ResourceList) {
	for i := range p.Spec.Containers {
		out = append(out, p.Spec.Containers[i].Resources.Requests)
	}
	for i := range p.Spec.InitContainers {
		out = append(out, p.Spec.InitContainers[i].Resources.Requests)
	}
	return out
}

func amount(ok func(resource.Quantity) bool) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		for _, list := range requests(p) {
			for name, q := range list {
				if isGPU[name] && ok(q) {
					return true
				}
			}
		}
		return false
	}
}

// namesIn is how many of the resources the containers ask for.
func namesIn(p *corev1.Pod, of []corev1.ResourceName) (n int) {
	lists := requests(p)
	for _, name := range of {
		if slices.ContainsFunc(lists, func(l corev1.ResourceList) bool { _, ok := l[name]; return ok }) {
			n++
		}
	}
	return n
}
