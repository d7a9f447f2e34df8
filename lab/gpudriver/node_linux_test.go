package gpudriver

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodeHasWhatTheDriverOffers: what a real kubelet makes of the device plugins, as
// they fail, go and come back.
func TestNodeHasWhatTheDriverOffers(t *testing.T) {
	n := newOnNode(t, DevicePlugin, gpu+"=8", mig+"=7", shared+"=1x4")
	n.has(gpu, 8, 8)
	n.has(mig, 7, 7)
	n.has(shared, 4, 4)

	must(t, n.driver.SetHealthy("gpu-3", false))
	n.has(gpu, 8, 7)
	must(t, n.driver.SetHealthy("gpu-8", false)) // in seven slices
	n.has(mig, 7, 0)
	must(t, n.driver.SetHealthy("gpu-3", true))
	n.has(gpu, 8, 8)

	must(t, n.driver.Vanish(t.Context()))
	n.has(gpu, 8, 0)
	n.has(shared, 4, 0)
	must(t, n.driver.Return(t.Context()))
	n.has(gpu, 8, 8)
	must(t, n.driver.Restart(t.Context()))
	n.has(gpu, 8, 8)
}

// TestPodsFindTheirGPUs in their environment, each its own.
func TestPodsFindTheirGPUs(t *testing.T) {
	n := newOnNode(t, DevicePlugin, gpu+"=3", shared+"=1x4")
	n.has(gpu, 3, 3)
	n.has(shared, 4, 4)
	owner := map[string]string{}
	n.give(owner, "two", 2)
	n.give(owner, "one", 1)
	if len(owner) != 3 {
		t.Errorf("of 3 GPUs %d were found: %v", len(owner), owner)
	}
	pod := n.pod("slot")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{shared: resource.MustParse("1")}
	if found := n.run(pod, corev1.PodSucceeded); found["GPU_SUMMARY_DEVICE_GPU_3"] != n.driver.uuid("gpu-3") {
		t.Errorf("with a slot of gpu-3 a pod found %v", found)
	}
}

// give runs a pod with so many GPUs for the rest of the test, and notes which it found.
func (n *onNode) give(owner map[string]string, name string, gpus int64) {
	n.Helper()
	pod := n.pod(name, "wait")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	found := n.run(pod, corev1.PodRunning)
	if len(found) != int(gpus)+1 { // and all of them in one variable
		n.Errorf("pod %s has %d GPUs and found %v", name, gpus, found)
	}
	for _, d := range n.driver.Devices() {
		uuid := found[Variable(d.Name)]
		if uuid == "" {
			continue
		}
		if uuid != d.UUID || owner[uuid] != "" || d.Resource != gpu {
			n.Errorf("pod %s has %s = %q, which is %q's", name, d.Name, uuid, owner[uuid])
		}
		owner[uuid] = name
	}
}

// TestPodsFindTheirClaims: the scheduler allocates, the kubelet has the driver prepare,
// and the pod finds the devices. Its status says how they are.
func TestPodsFindTheirClaims(t *testing.T) {
	n := newOnNode(t, DRA, gpu+"=3", mig+"=1")
	n.claimed("two", asks("gpus", DRADriver, 2))
	two := n.pod("two", "wait")
	useClaim(two, "two")
	found := n.run(two, corev1.PodRunning)
	held := n.claim("two").Status.Allocation.Devices.Results
	if len(found) != 2 || len(held) != 2 {
		t.Fatalf("with a claim of two, allocated %v, the pod found %v", held, found)
	}
	for _, h := range held {
		if got := found[Variable(h.Device)]; got != n.driver.uuid(h.Device) {
			t.Errorf("of %s the pod found %q", h.Device, got)
		}
	}

	// By name, as from a device plugin; then the claim is the scheduler's.
	one := n.pod("one")
	one.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: resource.MustParse("1")}
	if found := n.run(one, corev1.PodSucceeded); len(found) != 1 {
		t.Errorf("with a request of one, the pod found %v", found)
	}
	n.claimed("slice", asks("mig", "mig.nvidia.com", 1))
	slice := n.pod("slice")
	useClaim(slice, "slice")
	if found := n.run(slice, corev1.PodSucceeded); found["GPU_SUMMARY_DEVICE_GPU_3_MIG_1G_5GB_0"] != n.driver.uuid("gpu-3-mig-1g-5gb-0") {
		t.Errorf("with a claim of a MIG slice, the pod found %v", found)
	}

	must(t, n.driver.SetHealthy(held[0].Device, false))
	eventually(t, "the pod's status to say so", func() error {
		pod, err := n.client.CoreV1().Pods(n.namespace).Get(t.Context(), "two", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, status := range pod.Status.ContainerStatuses[0].AllocatedResourcesStatus {
			for _, r := range status.Resources {
				if r.Health == corev1.ResourceHealthStatusUnhealthy {
					return nil
				}
			}
		}
		return fmt.Errorf("it says %+v", pod.Status.ContainerStatuses[0].AllocatedResourcesStatus)
	})

	// A driver that has gone cannot prepare, and one that is back does.
	must(t, n.driver.Restart(t.Context()))
	n.claimed("later", asks("gpus", DRADriver, 1))
	later := n.pod("later")
	useClaim(later, "later")
	if found := n.run(later, corev1.PodSucceeded); len(found) != 1 {
		t.Errorf("after the driver's restart the pod found %v", found)
	}
}

// TestNodeKeepsItsGPUsOverARestart of the kubelet: the driver registers again, running
// pods keep theirs, and another gets what is left. It comes last: a kubelet that has
// just started still takes the devices of deleted pods for used.
func TestNodeKeepsItsGPUsOverARestart(t *testing.T) {
	n := newOnNode(t, DevicePlugin, gpu+"=4", mig+"=7")
	n.has(gpu, 4, 4)
	owner := map[string]string{}
	n.give(owner, "before", 2)
	must(t, n.driver.SetHealthy("gpu-4", false)) // in seven slices
	must(t, n.node.Kubelet().Restart(t.Context()))
	n.has(gpu, 4, 4)
	n.has(mig, 7, 0)
	n.give(owner, "after", 2)
	if len(owner) != 4 {
		t.Errorf("of 4 GPUs %d were found: %v", len(owner), owner)
	}
}
