package realnode

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/gpu-summary/gpu-summary-controller/lab/testkit"
)

// TestPodRunsToItsEnd: it is scheduled like any other, runs, and its log is there, which
// the API server gets from the kubelet.
func TestPodRunsToItsEnd(t *testing.T) {
	labNode(t)
	ns := namespace(t)
	p := pod("hello", "hello")
	p.Spec.NodeName = ""
	run(t, ns, p, corev1.PodSucceeded)
	if got := logOf(t, ns, "hello"); got != "hello from hello" {
		t.Errorf("log %q, want %q", got, "hello from hello")
	}
}

// TestPodReachesTheAPIServer with what every pod is given: the service's address, a
// token, and the authority of the server's certificate.
func TestPodReachesTheAPIServer(t *testing.T) {
	labNode(t)
	ns := namespace(t)
	run(t, ns, pod("whoami", "whoami"), corev1.PodSucceeded)
	if got, want := logOf(t, ns, "whoami"), "system:serviceaccount:"+ns+":default"; got != want {
		t.Errorf("the pod is taken for %q, want %q", got, want)
	}
}

func TestPodSecurityIsEnforced(t *testing.T) {
	labNode(t)
	p := pod("careless", "hello")
	p.Spec.SecurityContext, p.Spec.Containers[0].SecurityContext = nil, nil
	_, err := client(t).CoreV1().Pods(namespace(t)).Create(t.Context(), p, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
		t.Errorf("error %v, want one of Pod Security", err)
	}
}

// TestServiceLeadsToItsPod: from outside through Dial, and from the API server, whose
// proxy takes the other way in.
func TestServiceLeadsToItsPod(t *testing.T) {
	n := labNode(t)
	ns := namespace(t)
	run(t, ns, pod("server", "serve"), corev1.PodRunning)
	core := client(t).CoreV1()
	service, err := core.Services(ns).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "server"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "server"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	http := &http.Client{Transport: &http.Transport{DialContext: n.Dial, DisableKeepAlives: true}}
	testkit.Eventually(t, "the service to lead to the pod", func(context.Context) error {
		response, err := http.Get("http://" + service.Spec.ClusterIP)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err == nil && string(body) != "server" {
			err = fmt.Errorf("it says %q", body)
		}
		return err
	})
	body, err := core.Pods(ns).ProxyGet("http", "server", "8080", "/", nil).DoRaw(t.Context())
	if err != nil || string(body) != "server" {
		t.Errorf("through the API server's proxy: %q, %v", body, err)
	}
}

// TestKWOKLeavesTheNodeAlone, and plays others beside it.
func TestKWOKLeavesTheNodeAlone(t *testing.T) {
	labNode(t)
	nodes := client(t).CoreV1().Nodes()
	played, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "played", Labels: map[string]string{"kind": "played"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Delete(context.Background(), played.Name, metav1.DeleteOptions{}) })
	testkit.Eventually(t, "the played node to be ready", func(ctx context.Context) error {
		node, err := nodes.Get(ctx, played.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", node.Status.Conditions)
	})
	ns := namespace(t)
	p := pod("elsewhere", "hello")
	p.Spec.NodeName = played.Name
	run(t, ns, p, corev1.PodRunning) // as everything on such a node does, for ever
	lease, err := client(t).CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), DefaultName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// KWOK does its part for the nodes whose lease it holds.
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != DefaultName {
		t.Errorf("the real node's lease is held by %q, want its kubelet", holder)
	}
}
