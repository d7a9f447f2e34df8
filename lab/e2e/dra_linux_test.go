package e2e

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-summary/gpu-summary-controller/lab/gpudriver"
)

// TestDRAClaim: a pod with a claim of its own holds a device as long as it is there, and
// finds that device and no other.
func TestDRAClaim(t *testing.T) {
	e := newDRA(t)
	own := e.template("own", asks(1))
	e.running(user("a", own))
	e.rows("dra: 8 of 8 healthy, 1 requested, 7 free, 0 overcommitted")
	e.settled(1)
	e.running(user("b", own))
	e.rows("dra: 8 of 8 healthy, 2 requested, 6 free, 0 overcommitted")
	e.settled(2)
	given := e.given()
	if len(given["a"]) != 1 || len(given["b"]) != 1 || given["a"][0] == given["b"][0] {
		t.Fatalf("given are %v, want one device for each of two pods", given)
	}
	e.finds("a", given["a"])
	e.finds("b", given["b"])
	e.end("a", 0) // with it goes the claim
	e.reaches("a", corev1.PodSucceeded)
	e.rows("dra: 8 of 8 healthy, 1 requested, 7 free, 0 overcommitted")
	e.settled(1)
	e.remove("b")
	e.rows("dra: 8 of 8 healthy, 0 requested, 8 free, 0 overcommitted")
	e.settled(0)
}

// TestDRASharedClaim: two pods with the same claim have the same device, which is in use
// until both have gone.
func TestDRASharedClaim(t *testing.T) {
	e := newDRA(t)
	shared := e.claim("shared", asks(1))
	e.running(user("a", shared))
	e.running(user("b", shared))
	e.rows("dra: 8 of 8 healthy, 1 requested, 7 free, 0 overcommitted")
	e.settled(1)
	given := e.given()
	if len(given["a"]) != 1 || !slices.Equal(given["a"], given["b"]) {
		t.Fatalf("given are %v, want the same device for two pods", given)
	}
	e.finds("a", given["a"])
	e.finds("b", given["a"])
	e.remove("a")
	e.eventually("the claim to be b's alone", func() error {
		return e.reserved("shared", 1)
	})
	e.rows("dra: 8 of 8 healthy, 1 requested, 7 free, 0 overcommitted")
	e.settled(1)
	e.remove("b")
	e.rows("dra: 8 of 8 healthy, 0 requested, 8 free, 0 overcommitted")
	e.settled(0)
}

func (e *env) reserved(claim string, pods int) error {
	c, err := e.client.ResourceV1().ResourceClaims(e.namespace).Get(e.Context(), claim, metav1.GetOptions{})
	if err == nil && len(c.Status.ReservedFor) != pods {
		err = fmt.Errorf("it is reserved for %v", c.Status.ReservedFor)
	}
	return err
}

// TestDRAAdminAccess: who looks after devices has all of them, those in use included,
// and takes none from anybody.
func TestDRAAdminAccess(t *testing.T) {
	e := newDRA(t)
	label := fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, resourcev1.DRAAdminNamespaceLabelKey)
	_, err := e.client.CoreV1().Namespaces().Patch(t.Context(), e.namespace, types.MergePatchType, []byte(label), metav1.PatchOptions{})
	e.must(err)
	e.running(user("before", e.template("two", asks(2))))
	e.settled(2)
	e.running(user("admin", e.claim("admin", claimOf(resourcev1.ExactDeviceRequest{
		AllocationMode: resourcev1.DeviceAllocationModeAll, AdminAccess: new(true),
	}))))
	given := e.given()
	if len(given["admin"]) != devices || len(given["before"]) != 2 {
		t.Fatalf("given are %v, want all devices for administration and 2 for the other pod", given)
	}
	e.finds("admin", given["admin"], gpudriver.AdminVariable)
	e.rows("dra: 8 of 8 healthy, 2 requested, 6 free, 0 overcommitted")
	e.settled(2)
	// What only administration has is free, by the scheduler as well.
	e.running(user("after", e.template("six", asks(6))))
	e.rows("dra: 8 of 8 healthy, 8 requested, 0 free, 0 overcommitted")
	e.settled(8)
	e.remove("before")
	e.remove("after")
	e.rows("dra: 8 of 8 healthy, 0 requested, 8 free, 0 overcommitted")
	e.settled(0)
	e.reaches("admin", corev1.PodRunning)
}

// TestDRADeviceTurnsUnhealthy: the driver taints it. One that is in use is overcommitted
// and one that is not can no longer be had; each is missing once.
func TestDRADeviceTurnsUnhealthy(t *testing.T) {
	e := newDRA(t)
	e.running(user("one", e.template("one", asks(1))))
	e.settled(1)
	held := e.given()["one"][0]
	e.must(lab.driver.SetHealthy(held, false))
	e.rows("dra: 7 of 8 healthy, 1 requested, 7 free, 1 overcommitted")
	e.eventually("the pod's status to say so", func() error { return e.saysUnhealthy("one") })
	e.alerts("GPUNodeOvercommitted", `{node="`+e.node.Name()+`", resource="nvidia.com/gpu", source="dra"}`, 1)
	e.settled(1)
	idle := "gpu-0"
	if held == idle {
		idle = "gpu-1"
	}
	e.must(lab.driver.SetHealthy(idle, false))
	e.rows("dra: 6 of 8 healthy, 1 requested, 6 free, 1 overcommitted")

	// The scheduler finds as many as are free.
	e.create(user("seven", e.template("seven", asks(7))))
	e.unschedulable("seven", "cannot allocate all claims")
	e.running(user("six", e.template("six", asks(6))))
	e.rows("dra: 6 of 8 healthy, 7 requested, 0 free, 1 overcommitted")
	e.settled(7)
	if six := e.given()["six"]; len(six) != 6 || slices.Contains(six, held) || slices.Contains(six, idle) {
		t.Errorf("given are %q, want 6 without %s and %s", six, held, idle)
	}
	e.remove("seven")
	e.must(lab.driver.SetHealthy(held, true))
	e.must(lab.driver.SetHealthy(idle, true))
	e.rows("dra: 8 of 8 healthy, 7 requested, 1 free, 0 overcommitted")
	e.settled(7)
}

// saysUnhealthy looks for a device that is, in the status of a pod.
func (e *env) saysUnhealthy(name string) error {
	pod, err := e.client.CoreV1().Pods(e.namespace).Get(e.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range pod.Status.ContainerStatuses {
		for _, status := range c.AllocatedResourcesStatus {
			for _, r := range status.Resources {
				if r.Health == corev1.ResourceHealthStatusUnhealthy {
					return nil
				}
			}
		}
	}
	return fmt.Errorf("it says %+v", pod.Status.ContainerStatuses)
}
