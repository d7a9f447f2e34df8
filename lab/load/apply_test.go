package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// smallCluster has pods of every phase and size in a mix, on 20 nodes.
func smallCluster() *Cluster {
	phases := []corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodFailed, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded}
	c := &Cluster{Source: "test"}
	for i := range 20 {
		n := Node{Name: fmt.Sprintf("load-node-%02d", i), CPUMilli: 32000, MemoryMiB: 64 << 10, GPUs: int64(i % 3 * 4)}
		if n.GPUs > 0 {
			n.Model = []string{"T4", "G2"}[i%2]
		}
		c.Nodes = append(c.Nodes, n)
	}
	c.Pods = pods(60, func(i int, p *Pod) {
		p.GPUs = []int64{1, 0, 2, 1, 4}[i%5]
		p.Phase = phases[i%6]
	})
	return c
}

func TestApply(t *testing.T) {
	s := newServer(t)
	c := smallCluster()
	placement, err := Place(c)
	if err != nil {
		t.Fatal(err)
	}
	r := s.apply(t, s.cfg, c)
	if r.Objects != 81 || r.Reused != 0 || r.Elapsed <= 0 {
		t.Errorf("result %+v", r)
	}
	// Apply has promised that nothing is left to wait for.
	if diff := cmp.Diff(Expect(c, placement), s.totals(t)); diff != "" {
		t.Error(diff)
	}
	checkPods(t, s, c, placement)
	for _, node := range s.nodes(t) {
		checkNode(t, &node)
	}
	s.runCanary(t)
	checkPods(t, s, c, placement)
	if r := s.apply(t, s.cfg, c); r.Reused != 81 {
		t.Errorf("beside a pod that is not ours: %+v", r)
	}
}

// runCanary waits until scheduler and KWOK have run an ordinary pod. After that
// they have had the time to do the same to pods that they should leave alone.
func (s *server) runCanary(t *testing.T) {
	t.Helper()
	pods := s.CoreV1().Pods(s.namespace)
	canary := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "canary"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "lab/pause"}}},
	}
	if _, err := pods.Create(t.Context(), canary, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an ordinary pod to run", func() bool {
		pod, err := pods.Get(t.Context(), "canary", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	})
}

func checkPods(t *testing.T, s *server, c *Cluster, placement map[string]string) {
	t.Helper()
	got := map[string]corev1.Pod{}
	for _, pod := range s.pods(t) {
		got[pod.Name] = pod
	}
	if len(got) != len(c.Pods) {
		t.Errorf("%d pods, want %d", len(got), len(c.Pods))
	}
	for _, p := range c.Pods {
		pod := got[p.Name]
		if pod.Status.Phase != p.Phase || pod.Spec.NodeName != placement[p.Name] {
			t.Errorf("pod %s is %s on %q, want %s on %q", p.Name, pod.Status.Phase, pod.Spec.NodeName, p.Phase, placement[p.Name])
		}
		if unbound := p.Phase == corev1.PodPending; unbound != (pod.Spec.SchedulerName == PendingScheduler) || unbound == (pod.Labels[PhaseLabel] == string(p.Phase)) {
			t.Errorf("pod %s in phase %s has scheduler %q and labels %v", p.Name, p.Phase, pod.Spec.SchedulerName, pod.Labels)
		}
		if cpu := pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue(); cpu != p.CPUMilli {
			t.Errorf("pod %s asks for %dm cpu, want %dm", p.Name, cpu, p.CPUMilli)
		}
		if memory := pod.Spec.Containers[0].Resources.Requests.Memory().Value(); memory != p.MemoryMiB<<20 {
			t.Errorf("pod %s asks for %d bytes, want %d MiB", p.Name, memory, p.MemoryMiB)
		}
		ended := p.Phase == corev1.PodFailed || p.Phase == corev1.PodSucceeded
		terminated := len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Terminated != nil
		if ended != terminated || ended != (pod.Status.Reason != "") {
			t.Errorf("pod %s in phase %s has reason %q, container terminated: %t", p.Name, p.Phase, pod.Status.Reason, terminated)
		}
	}
}

func checkNode(t *testing.T, node *corev1.Node) {
	t.Helper()
	if pods := node.Status.Allocatable.Pods().Value(); pods != PodsPerNode {
		t.Errorf("node %s takes %d pods, want %d", node.Name, pods, PodsPerNode)
	}
	capacity, allocatable := node.Status.Capacity["nvidia.com/gpu"], node.Status.Allocatable["nvidia.com/gpu"]
	if capacity.Cmp(allocatable) != 0 {
		t.Errorf("node %s has capacity %s and allocatable %s", node.Name, capacity.String(), allocatable.String())
	}
	product, present := node.Labels["nvidia.com/gpu.product"], node.Labels["nvidia.com/gpu.present"]
	if gpu := !capacity.IsZero(); gpu != (product != "") || gpu != (present == "true") {
		t.Errorf("node %s with %s GPUs has product %q and present %q", node.Name, capacity.String(), product, present)
	}
	if node.Labels["kubernetes.io/hostname"] != node.Name || node.Labels["type"] != "kwok" || node.Annotations["kwok.x-k8s.io/node"] != "fake" {
		t.Errorf("node %s has labels %v and annotations %v", node.Name, node.Labels, node.Annotations)
	}
}

func TestApplyAgain(t *testing.T) {
	s := newServer(t)
	c := smallCluster()
	s.apply(t, s.cfg, c)

	var writes atomic.Int64
	watched := intercept(s.cfg, func(r *http.Request) {
		if r.Method != http.MethodGet {
			writes.Add(1)
		}
	})
	r := s.apply(t, watched, c)
	if r.Objects != 81 || r.Reused != 81 || writes.Load() != 0 {
		t.Errorf("the same again, with %d writes: %+v", writes.Load(), r)
	}

	// p2 is Failed. It is as if the first load had been stopped before its status.
	ctx, pods := t.Context(), s.CoreV1().Pods(s.namespace)
	// At once: KWOK, asked to end a pod, deletes by name, and on a busy machine it may
	// do so once more when there is a new one.
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for _, name := range []string{"p0", "p2"} {
		if err := pods.Delete(ctx, name, now); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" to be gone", func() bool {
			_, err := pods.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
	placement, err := Place(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Create(ctx, podObject(&c.Pods[2], s.namespace, placement["p2"]), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if r := s.apply(t, s.cfg, c); r.Objects != 81 || r.Reused != 80 {
		t.Errorf("with a pod gone: %+v", r)
	}
	checkPods(t, s, c, placement)
}

func TestApplyStopsAtTheFirstFailure(t *testing.T) {
	s := newServer(t)
	c := smallCluster()
	c.Pods[7].Name = "No_Name" // as ReadOpenB would never let it through
	_, err := Apply(t.Context(), s.cfg, c, Options{Namespace: s.namespace, Workers: 1})
	if err == nil || !strings.HasPrefix(err.Error(), "create pod "+s.namespace+"/No_Name: ") || !apierrors.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
	if n := len(s.pods(t)); n != 7 {
		t.Errorf("%d pods, want the 7 before", n)
	}
}

// roundTripper lets a test stand between Apply and the server.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// intercept calls before with every request, before it is sent.
func intercept(cfg *rest.Config, before func(*http.Request)) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			before(r)
			return next.RoundTrip(r)
		})
	})
	return cfg
}

func TestApplyIsCancelledAndResumed(t *testing.T) {
	s := newServer(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var creations atomic.Int64
	interrupted := intercept(s.cfg, func(r *http.Request) {
		if r.Method == http.MethodPost && creations.Add(1) == 50 {
			cancel(errors.New("enough"))
		}
	})
	c := smallCluster()
	r, err := Apply(ctx, interrupted, c, Options{Namespace: s.namespace, Workers: 4})
	want := fmt.Sprintf("load stopped after %d of 81 objects: enough", r.Objects)
	if fmt.Sprint(err) != want || r.Objects < 40 || r.Objects > 50 {
		t.Errorf("got %v and %+v, want %s", err, r, want)
	}
	// What was sent and what was answered may differ by the requests under way.
	again := s.apply(t, s.cfg, c)
	if again.Objects != 81 || again.Reused < r.Objects || again.Reused > r.Objects+4 {
		t.Errorf("resumed: %+v after %+v", again, r)
	}
	if diff := cmp.Diff(Expect(c, must(Place(c))), s.totals(t)); diff != "" {
		t.Error(diff)
	}
}

func must(placement map[string]string, err error) map[string]string {
	if err != nil {
		panic(err)
	}
	return placement
}

// TestApplyWaitsForTheServiceAccount hides the ServiceAccount for a while: on a
// fresh server the controller manager is just as late.
func TestApplyWaitsForTheServiceAccount(t *testing.T) {
	s := newServer(t)
	hide := func(times int64) *rest.Config {
		var asked atomic.Int64
		hidden := rest.CopyConfig(s.cfg)
		hidden.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/serviceaccounts/default") && asked.Add(1) <= times {
					return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}, nil
				}
				return next.RoundTrip(r)
			})
		})
		return hidden
	}
	_, err := Apply(t.Context(), hide(1000), smallCluster(), Options{Namespace: s.namespace, Patience: 300 * time.Millisecond})
	if want := "wait for serviceaccount " + s.namespace + "/default: 1 left and no change for 300ms"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if n := len(s.pods(t)); n != 0 {
		t.Errorf("%d pods without a ServiceAccount", n)
	}
	if r := s.apply(t, hide(3), smallCluster()); r.Objects != 81 || r.Reused != 1 {
		t.Errorf("result %+v", r)
	}
}

// TestApplyNoticesWhatHappenedMeanwhile takes a pod away while the last one is
// created, and lets another one run on.
func TestApplyNoticesWhatHappenedMeanwhile(t *testing.T) {
	s := newServer(t)
	c := smallCluster()
	pods := s.CoreV1().Pods(s.namespace)
	var creations atomic.Int64
	disturbed := intercept(s.cfg, func(r *http.Request) {
		if r.Method == http.MethodPost && creations.Add(1) == 81 {
			if err := pods.Delete(r.Context(), "p10", *metav1.NewDeleteOptions(0)); err != nil {
				t.Error(err)
			}
		}
	})
	_, err := Apply(t.Context(), disturbed, c, Options{Namespace: s.namespace, Workers: 1, Patience: 300 * time.Millisecond})
	want := "wait for pods to reach the phase of the trace: 1 left and no change for 300ms: pod " + s.namespace + "/p10 is gone, not Running"
	if fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	c.Pods = c.Pods[:10]
	c.Pods[7].Phase = corev1.PodSucceeded
	l := &loader{client: s, cluster: c, o: Options{Namespace: s.namespace, Patience: 300 * time.Millisecond}}
	want = strings.ReplaceAll(want, "p10 is gone, not Running", "p7 is Running, not Succeeded")
	if err := l.settle(t.Context()); fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
