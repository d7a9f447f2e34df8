package diff

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestGoldenVectors: internal/count has these pods, too, with the numbers written
// beside them. Here the scheduler itself says that the numbers are right.
func TestGoldenVectors(t *testing.T) {
	for _, tc := range []struct {
		name, containers string
		change           func(*corev1.Pod)
		want             int64
	}{
		{"V01", "m2 m1", nil, 3},
		{"V02", "i4 m2", nil, 4},
		{"V03", "i1 m2 m2", nil, 4},
		{"V04", "s1 m4", nil, 5},
		{"V05", "s1 i4 m2", nil, 5},
		{"V06", "i4 s1 m2", nil, 4},
		{"V08", "m2", func(p *corev1.Pod) { p.Spec.Overhead = gpuList("1") }, 3},
		{"V10", "m2", func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: gpuList("8")}
			p.Spec.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("4")
		}, 2},
		{"V11", "m2", func(p *corev1.Pod) {
			r := &p.Spec.Containers[0].Resources
			r.Limits, r.Requests = r.Requests, nil
		}, 0},
		{"V12", "m2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, 0},
		{"V13", "m2", func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "OutOfnvidia.com/gpu" }, 0},
		{"V15", "m2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }, 2},
		{"V18", "m2", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "m2", AllocatedResources: gpuList("4")}}
		}, 4},
		{"V20", "m4", func(p *corev1.Pod) { resizing(p, corev1.PodReasonDeferred) }, 4},
		{"R8 infeasible, no GPU in the status", "m4", func(p *corev1.Pod) { resizing(p, corev1.PodReasonInfeasible) }, 0},
		{"V21", "m4", func(p *corev1.Pod) { p.Spec.NodeName = "" }, 0},
		{"V24", "s0 i0 m0", nil, 0},
	} {
		pod := notation(tc.containers)
		if tc.change != nil {
			tc.change(pod)
		}
		pods := []*corev1.Pod{pod}
		key := Key{"node-0", string(gpus[0])}
		if scheduler, ours := Scheduler(nodesOf(pods), pods)[key], Ours(nodesOf(pods), pods)[key]; scheduler != tc.want || ours != tc.want {
			t.Errorf("%s: the scheduler says %d, we say %d, the table %d", tc.name, scheduler, ours, tc.want)
		}
	}
}

// notation makes a pod of words like m2: a container, an init step (i) or a sidecar
// (s), and its GPUs.
func notation(words string) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-0"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	for word := range strings.FieldsSeq(words) {
		c := corev1.Container{Name: word, Resources: corev1.ResourceRequirements{Requests: gpuList(word[1:])}}
		if word[0] == 's' {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		if word[0] == 'm' {
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		} else {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		}
	}
	return pod
}

func gpuList(n string) corev1.ResourceList {
	return corev1.ResourceList{gpus[0]: resource.MustParse(n)}
}

// resizing is what a kubelet reports that allocated cpu, and no GPU.
func resizing(p *corev1.Pod, reason string) {
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: p.Spec.Containers[0].Name, AllocatedResources: cpu, Resources: &corev1.ResourceRequirements{Requests: cpu},
	}}
}
