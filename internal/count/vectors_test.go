package count_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestGoldenVectors holds the number that NodeInfo of kube-scheduler 1.37.2 gives
// for each pod, and names the rule it takes. The vectors keep the numbers by which
// they are known, which have gaps. lab/diff asks the scheduler itself.
func TestGoldenVectors(t *testing.T) {
	for _, tc := range []struct {
		name, containers string
		change           func(*corev1.Pod)
		requested        int64
		pending          int64
	}{
		{"V01 R7", "m2 m1", nil, 3, 0},
		{"V02 R7", "i4 m2", nil, 4, 0},
		{"V03 R7", "i1 m2 m2", nil, 4, 0},
		{"V04 R7", "s1 m4", nil, 5, 0},
		{"V05 R7", "s1 i4 m2", nil, 5, 0},
		{"V06 R7", "i4 s1 m2", nil, 4, 0},
		{"V08 R7 overhead", "m2", func(p *corev1.Pod) { p.Spec.Overhead = list("1") }, 3, 0},
		{"V10 R9", "m2", podLevel("8"), 2, 0},
		{"V11 R10", "m2", limitsOnly, 0, 0},
		{"V12 R1 Succeeded", "m2", phase(corev1.PodSucceeded), 0, 0},
		{"V13 R1 OutOfnvidia.com/gpu", "m2", failedAtAdmission, 0, 0},
		{"V14 R2", "m2", deleted, 2, 0},
		{"V15 R1 Unknown", "m2", phase(corev1.PodUnknown), 2, 0},
		{"V16 R1 Pending and bound", "m2", phase(corev1.PodPending), 2, 0},
		{"V17 R1 no phase", "m2", phase(""), 2, 0},
		{"V18 R8", "m2", allocated("m2", "4"), 4, 0},
		{"V20 R8 deferred", "m4", resizing(corev1.PodReasonDeferred), 4, 0},
		{"V21 P1", "m4", waiting, 0, 4},
		{"V24", "s0 i0 m0", nil, 0, 0},

		{"R8 infeasible, and no GPU in the status", "m4", resizing(corev1.PodReasonInfeasible), 0, 0},
		{"R8 infeasible, and fewer allocated", "m4", both(resizing(corev1.PodReasonInfeasible), allocated("m4", "1")), 1, 0},
		{"R8 a sidecar's status", "s1 m4", allocated("s1", "3"), 7, 0},
		{"R7 an init step after two sidecars", "s1 s2 i4 m1", nil, 7, 0},
		{"R7 sidecars and containers exceed every step", "s1 i2 s2 m3", nil, 6, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := pod(notation(tc.containers))
			if tc.change != nil {
				tc.change(p)
			}
			sum := count.Take(world(read(p))).Of(count.NVIDIA)
			if sum.Requested != tc.requested || sum.Pending.Devices != tc.pending {
				t.Errorf("requested %d, pending %d; want %d and %d", sum.Requested, sum.Pending.Devices, tc.requested, tc.pending)
			}
		})
	}
}

// notation makes containers of words like m2: a container, an init step (i) or a
// sidecar (s), and its GPUs.
func notation(words string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = nil
		for word := range strings.FieldsSeq(words) {
			switch amount := word[1:]; word[0] {
			case 's':
				p.Spec.InitContainers = append(p.Spec.InitContainers, sidecar(amount))
			case 'i':
				p.Spec.InitContainers = append(p.Spec.InitContainers, step(amount))
			default:
				p.Spec.Containers = append(p.Spec.Containers, container(amount))
			}
		}
	}
}

func both(changes ...func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, change := range changes {
			change(p)
		}
	}
}

func podLevel(gpus string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: list(gpus)}
		p.Spec.Resources.Requests[corev1.ResourceCPU] = list("4")[count.NVIDIA]
	}
}

func limitsOnly(p *corev1.Pod) {
	r := &p.Spec.Containers[0].Resources
	r.Limits, r.Requests = r.Requests, nil
}

// failedAtAdmission is a pod that the kubelet refused; it keeps its node.
func failedAtAdmission(p *corev1.Pod) {
	p.Status.Phase, p.Status.Reason = corev1.PodFailed, "OutOfnvidia.com/gpu"
}

func allocated(container, gpus string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, AllocatedResources: list(gpus)}}
	}
}

// resizing is a resize that has not been granted, while the status has only cpu.
func resizing(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		cpu := corev1.ResourceList{corev1.ResourceCPU: list("1")[count.NVIDIA]}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, AllocatedResources: cpu}}
	}
}
