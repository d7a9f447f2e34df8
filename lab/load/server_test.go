package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// started is the plane of this package's tests, if one of them asked for it.
var started *plane.Plane

var startPlane = sync.OnceValues(func() (*plane.Plane, error) {
	p, err := plane.Start(context.Background(), plane.Options{Progress: os.Stderr})
	started = p
	return p, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if started != nil {
		if err := started.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// server is a running API server with a namespace for one test.
type server struct {
	kubernetes.Interface
	cfg       *rest.Config
	namespace string
}

var servers atomic.Int64

// newServer returns a server that holds no load, now and after the test.
func newServer(t *testing.T) *server {
	t.Helper()
	if testing.Short() {
		t.Skipf("%s: needs a control plane", t.Name())
	}
	p, err := startPlane()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	// A namespace takes five seconds to go, so every test has one of its own.
	s := &server{client, p.Config(), fmt.Sprint("openb-", servers.Add(1))}
	t.Cleanup(func() { s.unload(t) })
	return s
}

func (s *server) unload(t *testing.T) {
	t.Helper()
	ctx, ours := context.Background(), metav1.ListOptions{LabelSelector: SourceLabel + "=" + Source}
	err := errors.Join(
		s.CoreV1().Pods(s.namespace).DeleteCollection(ctx, *metav1.NewDeleteOptions(0), ours),
		s.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, ours),
	)
	if err != nil {
		t.Error(err)
	}
	err = s.CoreV1().Namespaces().Delete(ctx, s.namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

func (s *server) nodes(t *testing.T) []corev1.Node {
	t.Helper()
	list, err := s.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (s *server) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	list, err := s.CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: SourceLabel + "=" + Source})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// versions tell whether anybody has written to a pod.
func (s *server) versions(t *testing.T) map[string]string {
	t.Helper()
	v := map[string]string{}
	for _, pod := range s.pods(t) {
		v[pod.Name] = pod.ResourceVersion
	}
	return v
}

// totals are what Expect predicts, counted from the API instead.
func (s *server) totals(t *testing.T) Totals {
	t.Helper()
	got := Totals{PerNode: map[string]int64{}}
	for _, node := range s.nodes(t) {
		if q, ok := node.Status.Allocatable["nvidia.com/gpu"]; ok {
			got.Allocatable += q.Value()
			got.PerNode[node.Name] = 0
		}
	}
	for _, pod := range s.pods(t) {
		q, asks := pod.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]
		got.Naive += q.Value()
		switch {
		case !asks:
		case pod.Spec.NodeName == "":
			got.Pending += q.Value()
		case pod.Status.Phase == corev1.PodRunning:
			got.Requested += q.Value()
			got.PerNode[pod.Spec.NodeName] += q.Value()
		}
	}
	got.Free = got.Allocatable - got.Requested
	return got
}

func (s *server) apply(t *testing.T, cfg *rest.Config, c *Cluster) Result {
	t.Helper()
	r, err := Apply(t.Context(), cfg, c, Options{Namespace: s.namespace})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}
