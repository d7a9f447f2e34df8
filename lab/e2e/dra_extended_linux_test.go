package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/lab/gpudriver"
)

// TestDRAExtendedResource: a pod asks for nvidia.com/gpu as ever, on a node where DRA
// has them. It is in the row of DRA, and nowhere else as well.
func TestDRAExtendedResource(t *testing.T) {
	e := newDRA(t)
	stop := e.allRows()
	e.create(pod("says", container("env", 1, "env")))
	e.reaches("says", corev1.PodSucceeded)
	found := e.found("says")
	for _, d := range lab.driver.Devices() {
		if uuid := found[gpudriver.Variable(d.Name)]; len(found) != 1 || uuid != "" && uuid != d.UUID {
			t.Fatalf("with a request of one the pod found %v, want one of the driver's devices", found)
		}
	}
	e.rows("dra: 8 of 8 healthy, 0 requested, 8 free, 0 overcommitted")
	e.settled(0)

	e.running(holder("one", 1))
	e.servedByDRA("one", 1)
	e.rows("dra: 8 of 8 healthy, 1 requested, 7 free, 0 overcommitted")
	e.settled(1)
	// Beside a claim of the other kind, until nothing is left.
	e.running(user("five", e.template("five", asks(5))))
	e.running(holder("two", 2))
	e.servedByDRA("two", 2)
	e.rows("dra: 8 of 8 healthy, 8 requested, 0 free, 0 overcommitted")
	e.settled(8)
	e.create(holder("more", 1))
	e.unschedulable("more", "")
	e.total(publish.AnnotationPending, "1")
	e.remove("one")
	e.reaches("more", corev1.PodRunning)
	e.total(publish.AnnotationPending, "0")
	e.settled(8)
	for _, name := range []string{"two", "five", "more"} {
		e.remove(name)
	}
	e.rows("dra: 8 of 8 healthy, 0 requested, 8 free, 0 overcommitted")
	e.settled(0)
	for _, row := range stop() {
		if row.Source != count.DynamicResources || row.Free < 0 || row.UsableFree < 0 || row.Overcommitted != 0 || row.Free+row.Requested != devices {
			t.Errorf("for a time there was %q", inWords(row))
		}
	}
}

// servedByDRA compares what a pod asked for by name with what it was given: that many
// devices, by a claim that the scheduler made.
func (e *env) servedByDRA(name string, gpus int) {
	e.Helper()
	pod, err := e.client.CoreV1().Pods(e.namespace).Get(e.Context(), name, metav1.GetOptions{})
	e.must(err)
	if pod.Status.ExtendedResourceClaimStatus == nil {
		e.Fatalf("pod %s is not served by DRA", name)
	}
	if given := e.given()[name]; len(given) != gpus {
		e.Errorf("pod %s has %q, want %d", name, given, gpus)
	}
}

// unschedulable waits until the scheduler has said that a pod fits nowhere, for this
// reason.
func (e *env) unschedulable(name, why string) {
	e.Helper()
	e.eventually("pod "+name+" to be unschedulable", func() error {
		pod, err := e.client.CoreV1().Pods(e.namespace).Get(e.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Spec.NodeName != "" {
			return errors.New(describe(pod))
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable && strings.Contains(c.Message, why) {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", pod.Status.Conditions)
	})
}

// TestNodeChangesFromDevicePluginToDRAAndBack, with pods that stay from each time. Every
// device is counted once, where it comes from, and free is what the scheduler still
// gives (D2).
func TestNodeChangesFromDevicePluginToDRAAndBack(t *testing.T) {
	e := newEnv(t)
	e.readyForDRA()
	e.running(holder("before", 2))
	e.rows("device-plugin: 8 of 8 healthy, 2 requested, 6 free, 0 overcommitted")
	e.settled(2)

	e.use(gpudriver.DRA)
	e.rows("device-plugin: 0 of 8 healthy, 2 requested, 0 free, 2 overcommitted",
		"dra: 8 of 8 healthy, 0 requested, 8 free, 0 overcommitted")
	e.settled(2)
	e.running(holder("during", 3))
	e.servedByDRA("during", 3)
	e.rows("device-plugin: 0 of 8 healthy, 2 requested, 0 free, 2 overcommitted",
		"dra: 8 of 8 healthy, 3 requested, 5 free, 0 overcommitted")
	e.settled(5)

	e.use(gpudriver.DevicePlugin)
	e.rows("device-plugin: 8 of 8 healthy, 2 requested, 3 free, 0 overcommitted, 3 claimed",
		"dra: 0 of 0 healthy, 3 requested, 0 free, 3 overcommitted")
	e.settled(5)
	if n := e.charged(); n != 5 {
		t.Errorf("the scheduler's NodeInfo has %d, want 2 requested and 3 claimed", n)
	}
	// What is free is what the scheduler still gives, and no more.
	e.create(holder("four", 4))
	e.unschedulable("four", "Insufficient nvidia.com/gpu")
	e.remove("four")
	e.running(holder("after", 3))
	e.rows("device-plugin: 8 of 8 healthy, 5 requested, 0 free, 0 overcommitted, 3 claimed",
		"dra: 0 of 0 healthy, 3 requested, 0 free, 3 overcommitted")
	e.settled(8)
	if n := e.charged(); n != 8 {
		t.Errorf("the scheduler's NodeInfo has %d, want 5 requested and 3 claimed", n)
	}

	// Only the driver that has prepared a claim can let it go.
	e.use(gpudriver.DRA)
	e.remove("during")
	e.rows("device-plugin: 0 of 8 healthy, 5 requested, 0 free, 5 overcommitted",
		"dra: 8 of 8 healthy, 0 requested, 8 free, 0 overcommitted")
	e.settled(5)
	e.use(gpudriver.DevicePlugin)
	e.rows("device-plugin: 8 of 8 healthy, 5 requested, 3 free, 0 overcommitted")
	e.settled(5)
	e.remove("before")
	e.remove("after")
	e.rows("device-plugin: 8 of 8 healthy, 0 requested, 8 free, 0 overcommitted")
	e.settled(0)
}
