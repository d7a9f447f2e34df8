package load

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodeConflict(t *testing.T) {
	n := &Node{Name: "n", CPUMilli: 96000, MemoryMiB: 1024, GPUs: 8, Model: "G2"}
	for name, tc := range map[string]struct {
		edit func(*corev1.Node)
		want string
	}{
		"same":         {func(*corev1.Node) {}, ""},
		"cordoned":     {func(o *corev1.Node) { o.Spec.Unschedulable = true }, ""},
		"foreign":      {func(o *corev1.Node) { delete(o.Labels, SourceLabel) }, "it was not created by a load"},
		"going":        {func(o *corev1.Node) { o.DeletionTimestamp = &metav1.Time{} }, "it is being deleted"},
		"fewer GPUs":   {func(o *corev1.Node) { o.Status.Allocatable[gpuResource] = resource.MustParse("7") }, "its nvidia.com/gpu is 7, not 8"},
		"no GPUs":      {func(o *corev1.Node) { delete(o.Status.Allocatable, gpuResource) }, "its nvidia.com/gpu is 0, not 8"},
		"less memory":  {func(o *corev1.Node) { o.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("1Mi") }, "its memory is 1Mi, not 1Gi"},
		"other model":  {func(o *corev1.Node) { o.Labels[gpuProductLabel] = "T4" }, `its nvidia.com/gpu.product is "T4", not "G2"`},
		"other format": {func(o *corev1.Node) { o.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("96") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := nodeObject(n, metav1.Now())
			tc.edit(found)
			if got := nodeConflict(found, n); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := nodeConflict(nodeObject(n, metav1.Now()), nil); got != "it is left from another load" {
		t.Error(got)
	}
}

func TestPodConflict(t *testing.T) {
	p := &Pod{Name: "p", CPUMilli: 500, MemoryMiB: 1024, GPUs: 2, Phase: corev1.PodRunning}
	l := &loader{o: Options{Namespace: "openb"}, placement: map[string]string{"p": "n"}}
	for name, tc := range map[string]struct {
		edit func(*corev1.Pod)
		want string
	}{
		"same":          {func(o *corev1.Pod) { o.Status.Phase = corev1.PodRunning }, ""},
		"half done":     {func(*corev1.Pod) {}, ""},
		"foreign":       {func(o *corev1.Pod) { o.Labels = nil }, "it was not created by a load"},
		"going":         {func(o *corev1.Pod) { o.DeletionTimestamp = &metav1.Time{} }, "it is being deleted"},
		"elsewhere":     {func(o *corev1.Pod) { o.Spec.NodeName = "m" }, `it is on node "m", not on "n"`},
		"unbound":       {func(o *corev1.Pod) { o.Spec.NodeName = "" }, `it is on node "", not on "n"`},
		"more GPUs":     {func(o *corev1.Pod) { o.Spec.Containers[0].Resources.Requests[gpuResource] = resource.MustParse("4") }, "its nvidia.com/gpu is 4, not 2"},
		"ended":         {func(o *corev1.Pod) { o.Status.Phase = corev1.PodFailed }, "it is Failed, not Running"},
		"another phase": {func(o *corev1.Pod) { o.Labels[PhaseLabel] = "Failed" }, `its label lab.gpu-summary/phase is "Failed", not "Running"`},
	} {
		t.Run(name, func(t *testing.T) {
			found := podObject(p, "openb", "n")
			tc.edit(found)
			if got := l.podConflict(found, p); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
