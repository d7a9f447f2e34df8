package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// patience bounds every wait. Machines are shared; a test that gets there does
// not wait, and one that does not has failed however long this is.
const patience = 90 * time.Second

// env is one test's part of the cluster.
type env struct {
	*testing.T
	plane     *plane.Plane
	client    kubernetes.Interface
	namespace string
	replicas  int // controllers started in processes of their own
}

// newEnv makes a namespace on the common control plane, and afterwards removes
// it, every pod in it, and the nodes of the test.
func newEnv(t *testing.T) *env {
	t.Helper()
	e := newEnvOn(t, lab)
	t.Cleanup(e.clean)
	return e
}

// newEnvOn makes a namespace on any control plane, and leaves it there.
func newEnvOn(t *testing.T, p *plane.Plane) *env {
	t.Helper()
	client, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	e := &env{T: t, plane: p, client: client}
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	e.must(err)
	e.namespace = ns.Name
	e.eventually("the default service account", func() error {
		_, err := client.CoreV1().ServiceAccounts(e.namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	return e
}

func (e *env) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	now := int64(0)
	gone := metav1.DeleteOptions{GracePeriodSeconds: &now}
	core := e.client.CoreV1()
	e.describe(ctx)
	for what, err := range map[string]error{
		"pods":      core.Pods(e.namespace).DeleteCollection(ctx, gone, metav1.ListOptions{}),
		"nodes":     core.Nodes().DeleteCollection(ctx, gone, metav1.ListOptions{}),
		"namespace": core.Namespaces().Delete(ctx, e.namespace, gone),
	} {
		if err != nil {
			e.Errorf("clean up %s: %v", what, err)
		}
	}
	e.eventuallyIn(ctx, "no pod and no node left", func() error {
		pods, err := core.Pods(e.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		nodes, err := core.Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if n := len(pods.Items) + len(nodes.Items); n > 0 {
			return fmt.Errorf("%d objects left", n)
		}
		return nil
	})
}

// describe logs what a failed test has left.
func (e *env) describe(ctx context.Context) {
	if !e.Failed() {
		return
	}
	pods, err := e.client.CoreV1().Pods(e.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		e.Logf("list pods: %v", err)
		return
	}
	for _, p := range pods.Items {
		e.Logf("pod %s on %q is %s, uid %s, version %s, deleted %v", p.Name, p.Spec.NodeName, p.Status.Phase, p.UID, p.ResourceVersion, p.DeletionTimestamp)
	}
}

// eventually polls until check returns nil, or fails the test with what it said
// last.
func (e *env) eventually(what string, check func() error) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	defer cancel()
	e.eventuallyIn(ctx, what, check)
}

func (e *env) eventuallyIn(ctx context.Context, what string, check func() error) {
	e.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			e.Fatalf("waited for %s: %v", what, err)
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

// node creates a node with so many GPUs and waits until it can run pods.
func (e *env) node(name string, gpus int) {
	e.Helper()
	list := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	if gpus > 0 {
		list[count.NVIDIA] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	_, err := e.client.CoreV1().Nodes().Create(e.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: list, Allocatable: list},
	}, metav1.CreateOptions{})
	e.must(err)
}

// pod describes a pod with one container that asks for so many GPUs, in the way
// most manifests do: as a limit. No scheduler looks at it.
func (e *env) pod(name string, gpus int) *corev1.Pod {
	limits := corev1.ResourceList{}
	if gpus > 0 {
		limits[count.NVIDIA] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: "nobody",
			Containers:    []corev1.Container{{Name: "c", Image: "busybox", Resources: corev1.ResourceRequirements{Limits: limits}}},
			Tolerations:   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			RestartPolicy: corev1.RestartPolicyNever,
		},
	}
}

func (e *env) create(pod *corev1.Pod) {
	e.Helper()
	_, err := e.client.CoreV1().Pods(e.namespace).Create(e.Context(), pod, metav1.CreateOptions{})
	e.must(err)
}

// bound creates a pod on a node.
func (e *env) bound(name, node string, gpus int) {
	e.Helper()
	pod := e.pod(name, gpus)
	pod.Spec.NodeName = node
	e.create(pod)
}

// finish lets a pod reach a terminal phase.
func (e *env) finish(name string, phase corev1.PodPhase) {
	e.Helper()
	e.eventually("phase "+string(phase)+" of "+name, func() error {
		pod, err := e.client.CoreV1().Pods(e.namespace).Get(e.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Status.Phase == corev1.PodPending {
			return fmt.Errorf("KWOK has not started it yet")
		}
		pod.Status.Phase = phase
		_, err = e.client.CoreV1().Pods(e.namespace).UpdateStatus(e.Context(), pod, metav1.UpdateOptions{})
		return err
	})
}

func (e *env) remove(name string) {
	e.Helper()
	now := int64(0)
	e.must(e.client.CoreV1().Pods(e.namespace).Delete(e.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
}

func (e *env) configMap() (*corev1.ConfigMap, error) {
	return e.client.CoreV1().ConfigMaps(e.namespace).Get(e.Context(), "gpu-summary", metav1.GetOptions{})
}

// shows waits until the ConfigMap has exactly these rows, given as "node=n …",
// and returns it.
func (e *env) shows(rows string) *corev1.ConfigMap {
	e.Helper()
	want := map[string]string{}
	for _, row := range strings.Fields(rows) {
		node, n, _ := strings.Cut(row, "=")
		want[node] = n
	}
	var cm *corev1.ConfigMap
	e.eventually(fmt.Sprintf("rows %q", rows), func() (err error) {
		if cm, err = e.configMap(); err != nil {
			return err
		}
		return sameRows(want, cm.Data)
	})
	return cm
}

func sameRows(want, got map[string]string) error {
	for node, n := range want {
		if got[node] != n {
			return fmt.Errorf("%s is %q, want %q", node, got[node], n)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d rows, want %d", len(got), len(want))
	}
	return nil
}

// total waits until an annotation has a value.
func (e *env) total(annotation, want string) {
	e.Helper()
	e.eventually(annotation+" "+want, func() error {
		cm, err := e.configMap()
		if err != nil {
			return err
		}
		if got := cm.Annotations[annotation]; got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// retried calls do again for as long as it meets conflicts.
func retried(do func() error) error {
	for range 20 {
		if err := do(); !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("20 conflicts in a row")
}
