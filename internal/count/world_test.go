package count_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// rawWorld is a cluster as the API server has it.
type rawWorld struct {
	pods       []*corev1.Pod
	nodes      []*corev1.Node
	nodesKnown bool
}

// makeWorld makes a cluster of bytes.
func makeWorld(data []byte) rawWorld {
	d := dice(data)
	raw := rawWorld{nodesKnown: !d.oneIn(8)}
	for i := range d.upTo(4) {
		raw.nodes = append(raw.nodes, d.node(i))
	}
	for len(d) > 0 {
		raw.pods = append(raw.pods, d.pod(len(raw.pods)))
	}
	return raw
}

func (d *dice) node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{}}}
	n.Status.Capacity = d.amounts()
	if d.oneIn(2) {
		n.Status.Capacity[count.NVIDIA] = resource.MustParse("200") // more than the pods ask for
	}
	n.Status.Allocatable = n.Status.Capacity
	if d.oneIn(3) {
		n.Status.Allocatable = d.amounts()
	}
	if !d.oneIn(4) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	if d.oneIn(2) {
		n.Labels["nvidia.com/gpu.product"] = []string{"A100", "H100"}[d.upTo(1)]
	}
	if d.oneIn(8) {
		n.Labels["nvidia.com/gpu.replicas"] = "4"
	}
	n.Spec.Unschedulable = d.oneIn(8)
	return n
}

func (d *dice) pod(i int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("ns", d.upTo(2)), Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint(i))}}
	if !d.oneIn(4) {
		p.Spec.NodeName = fmt.Sprint("n", d.upTo(5))
	}
	p.Status.Phase = []corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown}[d.upTo(5)]
	if d.oneIn(5) {
		deleted(p)
	}
	for range d.upTo(2) {
		p.Spec.Containers = append(p.Spec.Containers, d.container(fmt.Sprint("c", len(p.Spec.Containers)), p))
	}
	for range d.upTo(2) {
		c := d.container(fmt.Sprint("i", len(p.Spec.InitContainers)), p)
		if d.oneIn(2) {
			c.RestartPolicy = sidecar("1").RestartPolicy
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	switch d.upTo(8) {
	case 1:
		p.Spec.Overhead = d.amounts()
	case 2:
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: d.amounts()}
	case 3:
		p.Status.AllocatedResources = d.amounts()
		p.Status.Resources = &corev1.ResourceRequirements{Requests: d.amounts()}
	case 4:
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
	case 5:
		gated(p)
	case 6:
		nominated(p)
	case 7:
		status := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue}[d.upTo(1)]
		condition(status, corev1.PodReasonUnschedulable)(p)
	}
	switch d.upTo(3) {
	case 1:
		selects(product, []string{"A100", "H100", "B200"}[d.upTo(2)])(p)
	case 2:
		needs(term(is(product, []string{"A100", "B200"}[d.upTo(1)], "H100")))(p)
	}
	return p
}

func (d *dice) container(name string, p *corev1.Pod) corev1.Container {
	c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: d.amounts()}}
	if d.oneIn(6) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, AllocatedResources: d.amounts()})
	}
	return c
}

// dice throws what is left of some bytes, and zeroes after that.
type dice []byte

// upTo gives 0 to n.
func (d *dice) upTo(n int) int {
	if len(*d) == 0 {
		return 0
	}
	b := (*d)[0]
	*d = (*d)[1:]
	return int(b) % (n + 1)
}

func (d *dice) oneIn(n int) bool { return d.upTo(n-1) == n-1 }

func (d *dice) amounts() corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{count.NVIDIA, "nvidia.com/mig-1g.5gb", "amd.com/gpu", "nvidia.com/gpumem", corev1.ResourceCPU} {
		switch d.upTo(7) {
		case 0, 1, 2:
			out[name] = *resource.NewQuantity(int64(d.upTo(8)), resource.DecimalSI)
		case 3:
			out[name] = resource.MustParse([]string{"0", "1500m", "1e3", "1Ki", "0.5", "12345678901"}[d.upTo(5)])
		case 4:
			if d.oneIn(16) {
				out[name] = resource.MustParse([]string{"9223372036854775807", "7Ei", "-2"}[d.upTo(2)])
			}
		}
	}
	return out
}
