package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRefusedByKubelet: a pod that the kubelet refuses has failed. It is bound to its
// node and asks for GPUs for ever, and counts for nothing.
func TestRefusedByKubelet(t *testing.T) {
	t.Run("OutOfnvidia.com/gpu", testOutOf)
	t.Run("UnexpectedAdmissionError", testAdmissionError)
}

// testOutOf: the node says that it has one, by way of its status, and there is no device
// plugin to hand out anything. Such a kubelet judges the pod as the scheduler does.
func testOutOf(t *testing.T) {
	e := newEnv(t)
	e.settled(0)
	t.Cleanup(func() { e.must(lab.driver.Return(context.Background())) })
	e.must(lab.driver.Vanish(t.Context()))
	e.nodeHas(t.Context(), 0)
	// The kubelet remembers device plugins that it has once seen.
	e.must(e.node.Kubelet().Stop(t.Context()))
	e.must(os.Remove(checkpointFile(e.node)))
	e.must(e.node.Kubelet().Start(t.Context()))
	_, err := kubectl(t.Context(), "patch", "node", e.node.Name(), "--subresource=status", "--patch", `{"status":{"capacity":{"nvidia.com/gpu":"1"}}}`)
	e.must(err)
	e.nodeHas(t.Context(), 1)
	e.create(bound("refused", e.node.Name(), 2))
	pod := e.judged("refused")
	if pod.Status.Reason != "OutOfnvidia.com/gpu" {
		t.Fatalf("it is %s %s: %s", pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
	}
	t.Logf("the kubelet says: %s", pod.Status.Message)
	e.settled(0)
	e.must(lab.driver.Return(t.Context()))
	e.nodeHas(t.Context(), devices)
	e.fits()
}

// testAdmissionError: there is room by what the node says, and less by what the kubelet
// has just heard of the device plugin.
func testAdmissionError(t *testing.T) {
	e := newEnv(t)
	e.refused("UnexpectedAdmissionError", func() { e.sick(t) })
	e.healed()
	e.fits()
}

// refused puts a pod with all devices on the node, right after prepare, until the kubelet
// refuses it for this reason. What the node says, the kubelet brings up to date every few
// seconds; it is too late then, and so there are several attempts.
func (e *env) refused(reason string, prepare func()) {
	e.Helper()
	var seen []string
	for range 10 {
		prepare()
		e.create(bound("refused", e.node.Name(), devices))
		pod := e.judged("refused")
		if pod.Status.Reason == reason {
			e.Logf("the kubelet says: %s", pod.Status.Message)
			return
		}
		seen = append(seen, string(pod.Status.Phase)+" "+pod.Status.Reason)
		e.remove("refused")
		e.healed() // which is just after the kubelet has said how many there are
	}
	e.Fatalf("the kubelet's answers are %q", seen)
}

// judged waits until the kubelet has taken or refused the pod.
func (e *env) judged(name string) (pod *corev1.Pod) {
	e.Helper()
	e.eventually("the kubelet to judge pod "+name, func() (err error) {
		if pod, err = e.client.CoreV1().Pods(e.namespace).Get(e.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if pod.Status.Phase == corev1.PodPending {
			return fmt.Errorf("%s", describe(pod))
		}
		return nil
	})
	return pod
}

// fits: the refused pod is still there, and the devices are free for others.
func (e *env) fits() {
	e.Helper()
	e.settled(0)
	e.running(holder("all", devices))
	e.settled(devices)
	e.reaches("refused", corev1.PodFailed)
}
