package diff

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// status makes what a kubelet reports, and what it should not.
func (m *maker) status(pod *corev1.Pod) {
	s := &pod.Status
	if m.oneIn(3) {
		s.ContainerStatuses = m.statuses(pod.Spec.Containers)
		s.InitContainerStatuses = m.statuses(pod.Spec.InitContainers)
		if m.oneIn(16) {
			s.ContainerStatuses, s.InitContainerStatuses = s.InitContainerStatuses, s.ContainerStatuses
		}
	}
	m.conditions(s)
	// Together these two take the place of the containers' statuses (R8); one
	// alone does not.
	together := m.oneIn(10)
	if together || m.oneIn(16) {
		s.AllocatedResources = m.list()
	}
	if together || m.oneIn(16) {
		s.Resources = &corev1.ResourceRequirements{Requests: m.list()}
	}
	// The scheduler charges these pods by their spec as well. Ours moves them to a row
	// of another source; with no claim to be seen, the sum is to stay the same.
	if m.oneIn(20) {
		s.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
			ResourceClaimName: "claim",
			RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "c0", ResourceName: string(m.palette[0]), RequestName: "r0"}},
		}
	}
	if m.oneIn(20) {
		s.NodeAllocatableResourceClaimStatuses = []corev1.NodeAllocatableResourceClaimStatus{m.claim()}
	}
}

func (m *maker) statuses(containers []corev1.Container) (out []corev1.ContainerStatus) {
	for i := range containers {
		if m.oneIn(4) {
			continue
		}
		status := corev1.ContainerStatus{Name: containers[i].Name}
		if m.oneIn(16) {
			status.Name = "nobody"
		}
		switch m.upTo(3) {
		case 0: // an old kubelet
		case 1: // nothing has been resized
			status.AllocatedResources = containers[i].Resources.Requests.DeepCopy()
			status.Resources = containers[i].Resources.DeepCopy()
		default:
			if m.oneIn(2) {
				status.AllocatedResources = m.list()
			}
			if m.oneIn(2) {
				status.Resources = &corev1.ResourceRequirements{}
				m.requirements(status.Resources)
			}
		}
		out = append(out, status)
	}
	return out
}

func (m *maker) conditions(s *corev1.PodStatus) {
	add := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason})
	}
	if m.oneIn(3) {
		add(corev1.PodScheduled, corev1.ConditionTrue, "")
	} else if m.oneIn(6) {
		add(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)
	}
	pending := []string{corev1.PodReasonInfeasible, corev1.PodReasonInfeasible, corev1.PodReasonDeferred, ""}
	if m.oneIn(4) {
		add(corev1.PodResizePending, corev1.ConditionTrue, pick(m.dice, pending))
	}
	if m.oneIn(8) {
		add(corev1.PodResizeInProgress, corev1.ConditionTrue, pick(m.dice, []string{"", corev1.PodReasonError}))
	}
	if m.oneIn(24) { // a second one, which the scheduler does not get to
		add(corev1.PodResizePending, corev1.ConditionFalse, pick(m.dice, pending))
	}
}

// claim is counted only by a scheduler with a feature gate that is off by default.
func (m *maker) claim() corev1.NodeAllocatableResourceClaimStatus {
	amount := *resource.NewQuantity(int64(1+m.upTo(4)), resource.DecimalSI)
	return corev1.NodeAllocatableResourceClaimStatus{
		ResourceClaimName: "claim",
		Containers:        []string{"c0"},
		Mapping:           []corev1.NodeAllocatableMappedResources{{Name: m.palette[0], Quantity: &amount}},
	}
}
