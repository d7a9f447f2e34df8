package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/realnode"
)

// otherDevices is how many GPUs another node has.
const otherDevices = 4

// TestDrain of the node where both replicas run, there and back, with a second node that
// takes them: one after the other they move, with whoever has GPUs, and of the replicas
// one is always ready and one at most writes.
func TestDrain(t *testing.T) {
	e := newEnv(t)
	other := e.join()
	e.deployed("train", 2)
	e.settled(2)
	e.row(other.Name(), 0)
	before := len(e.writes())
	held, ready := e.holders(), e.fewestReady()
	e.drain(e.node, other)
	e.drain(other, e.node)
	e.settled(2)
	if n := ready(); n < 1 {
		t.Errorf("for a time %d replicas were ready", n)
	}
	gap, writers := e.oneWriterAtATime(e.writes()[before:])
	t.Logf("%d replicas wrote, with %s at most between two writes", writers, gap)
	if writers < 2 {
		t.Error("the leader was not replaced")
	}
	e.gaveBack(held())
}

// drain has kubectl evict all pods of a node, and waits until they run on another.
func (e *env) drain(from, to *realnode.Node) {
	e.Helper()
	leader, err := e.site.leader(e.Context())
	e.must(err)
	if leader.Spec.NodeName != from.Name() {
		e.Errorf("the leader %s is on %s", leader.Name, leader.Spec.NodeName)
	}
	step("draining %s, where the leader is", from.Name())
	e.cordon(to, false)
	_, err = kubectl(e.Context(), "drain", from.Name(), "--ignore-daemonsets", "--delete-emptydir-data", "--timeout="+patience.String())
	e.must(err)
	e.eventually("two replicas on "+to.Name(), func() error {
		for _, p := range e.site.pods(e.Context()) {
			if p.Spec.NodeName != to.Name() {
				return errors.New(describe(&p))
			}
		}
		return e.site.working(e.Context(), 2)
	})
	e.row(from.Name(), 0)
	e.row(to.Name(), 2)
	e.agreeIn(e.Context())
}

// fewestReady watches the replicas. The function it returns ends that, and returns how
// many of them were ready, and not about to end, when it was fewest.
func (e *env) fewestReady() func() int {
	e.Helper()
	pods := e.client.CoreV1().Pods(e.site.namespace)
	options := metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + e.site.publish}
	list, err := pods.List(e.Context(), options)
	e.must(err)
	ready := map[string]bool{}
	for i := range list.Items {
		ready[list.Items[i].Name] = isReady(&list.Items[i])
	}
	options.ResourceVersion = list.ResourceVersion
	watch, err := pods.Watch(e.Context(), options)
	e.must(err)
	fewest := number(ready)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				ready[pod.Name] = isReady(pod)
				fewest = min(fewest, number(ready))
			}
		}
	}()
	return func() int { watch.Stop(); <-done; return fewest }
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func number(set map[string]bool) (n int) {
	for _, in := range set {
		if in {
			n++
		}
	}
	return n
}

// TestDrainOfTheOnlyNode that has containers: one replica goes, and since it finds no
// other place, the chart's disruption budget keeps the second, which goes on. When pods
// may come again there are two.
func TestDrainOfTheOnlyNode(t *testing.T) {
	e := newEnv(t)
	e.running(holder("a", 2))
	e.settled(2)
	t.Cleanup(func() { e.cordon(e.node, false) })
	_, err := kubectl(t.Context(), "drain", e.node.Name(), "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--grace-period=5", "--timeout=20s")
	if err == nil || !strings.Contains(err.Error(), "would violate the pod's disruption budget") {
		t.Errorf("kubectl drain ended with: %v", err)
	}
	e.settled(0) // by the replica that stayed
	staying := 0
	for _, p := range e.site.pods(t.Context()) {
		if p.Spec.NodeName != "" {
			staying++
		}
	}
	if staying != 1 {
		t.Errorf("%d replicas stayed, want 1", staying)
	}
	e.cordon(e.node, false)
	e.eventually("two replicas", func() error { return e.site.working(t.Context(), 2) })
	e.running(holder("b", 3))
	e.settled(3)
}

// on leaves the pod no node but one, by way of the scheduler.
func on(node *realnode.Node, pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node.Name()}
	return pod
}

func (e *env) cordon(node *realnode.Node, cordoned bool) {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test may be over
	defer cancel()
	command := "uncordon"
	if cordoned {
		command = "cordon"
	}
	_, err := kubectl(ctx, command, node.Name())
	e.must(err)
}
