package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/realnode"
)

const (
	// patience bounds every wait. Machines are shared; a test that gets there does not
	// wait, and one that does not has failed however long this is.
	patience = 3 * time.Minute
	poll     = 50 * time.Millisecond
)

// env is one test's part of the cluster: a namespace for its pods, and what was
// installed once for all tests.
type env struct {
	*testing.T
	client    kubernetes.Interface
	node      *realnode.Node   // the one that all tests have
	nodes     []*realnode.Node // and another that has joined
	namespace string
	site      site
}

// newEnv makes a namespace, and afterwards compares for the last time and removes it
// with all that is in it.
func newEnv(t *testing.T) *env {
	t.Helper()
	needNode(t)
	e := &env{T: t, client: lab.client, node: lab.node, nodes: []*realnode.Node{lab.node}}
	e.site = installed(e)
	ns, err := e.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	e.must(err)
	e.namespace = ns.Name
	t.Cleanup(e.clean)
	e.eventually("the default service account", func() error {
		_, err := e.client.CoreV1().ServiceAccounts(e.namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	return e
}

// clean removes the test's pods and waits until kubelet, scheduler and controller have
// all noticed, so that the next test begins with nothing.
func (e *env) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if e.Failed() {
		e.describe(ctx)
	}
	if err := e.client.CoreV1().Namespaces().Delete(ctx, e.namespace, metav1.DeleteOptions{}); err != nil {
		e.Errorf("clean up: %v", err)
	}
	e.empty(ctx)
	e.agreeIn(ctx)
}

// empty removes the test's pods, and returns when they are gone.
func (e *env) empty(ctx context.Context) {
	e.Helper()
	pods, second := e.client.CoreV1().Pods(e.namespace), int64(1)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &second}, metav1.ListOptions{}); err != nil {
		e.Errorf("clean up: %v", err)
	}
	e.eventuallyIn(ctx, "the test's pods to be gone", func() error {
		left, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d are left, such as %s", len(left.Items), describe(&left.Items[0]))
		}
		return err
	})
}

// describe logs what a failed test has left.
func (e *env) describe(ctx context.Context) {
	for _, namespace := range []string{e.namespace, e.site.namespace} {
		pods, err := e.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			e.Logf("list pods: %v", err)
			continue
		}
		for i := range pods.Items {
			e.Log(describe(&pods.Items[i]))
		}
		events, err := e.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			e.Logf("list events: %v", err)
			continue
		}
		for _, event := range events.Items[max(0, len(events.Items)-30):] {
			e.Logf("event %s %s: %s", event.InvolvedObject.Name, event.Reason, event.Message)
		}
	}
	for _, pod := range e.site.pods(ctx) {
		log, err := e.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: new(int64(40))}).DoRaw(ctx)
		e.Logf("%s logged (%v):\n%s", pod.Name, err, log)
	}
}

func describe(pod *corev1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "pod %s on %q is %s %s %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil:
			fmt.Fprintf(&b, "; %s waits: %s %s", c.Name, c.State.Waiting.Reason, c.State.Waiting.Message)
		case c.State.Terminated != nil:
			fmt.Fprintf(&b, "; %s ended: %d %s %s", c.Name, c.State.Terminated.ExitCode, c.State.Terminated.Reason, c.State.Terminated.Message)
		default:
			fmt.Fprintf(&b, "; %s ready %v, restarted %d times", c.Name, c.Ready, c.RestartCount)
		}
		if last := c.LastTerminationState.Terminated; last != nil {
			fmt.Fprintf(&b, "; %s ended before: %d %s %s", c.Name, last.ExitCode, last.Reason, last.Message)
		}
	}
	return b.String()
}

// eventually polls until check returns nil, or fails the test with what it said last.
func (e *env) eventually(what string, check func() error) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	defer cancel()
	e.eventuallyIn(ctx, what, check)
}

func (e *env) eventuallyIn(ctx context.Context, what string, check func() error) {
	e.Helper()
	if err := eventually(ctx, check); err != nil {
		e.Fatalf("waited for %s: %v", what, err)
	}
}

// eventually polls until check returns nil or ctx ends, and returns what it said last.
func eventually(ctx context.Context, check func() error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for last := error(nil); ; {
		err := check()
		if err == nil {
			return nil
		}
		// That time is up is no news about what is waited for.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last
		}
	}
}

// must fails the test on an error.
func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}
