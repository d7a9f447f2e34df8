package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gpu-summary/gpu-summary-controller/lab/testkit"
)

// second starts another node on the shared plane, which is gone after the test.
func second(t *testing.T) *Node {
	t.Helper()
	labNode(t)
	n, err := Start(t.Context(), Options{Plane: sharedPlane})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := client(t).CoreV1().Nodes().Delete(context.Background(), n.Name(), metav1.DeleteOptions{})
		if err := errors.Join(n.Stop(), err); err != nil {
			t.Error(err)
		}
	})
	if err := loadTestImage(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNodesReachEachOther: each is a node like the first, and a service leads to pods
// of either from both, from outside and from pods.
func TestNodesReachEachOther(t *testing.T) {
	n := second(t)
	if want := DefaultName + "-2"; n.Name() != want {
		t.Errorf("the second node is called %s, want %s", n.Name(), want)
	}
	ns := namespace(t)
	run(t, ns, podOn(n.Name(), "whoami", "whoami"), corev1.PodSucceeded)
	if got, want := logOf(t, ns, "whoami"), "system:serviceaccount:"+ns+":default"; got != want {
		t.Errorf("on the second node a pod is taken for %q, want %q", got, want)
	}
	for _, node := range []*Node{shared, n} {
		name := "on-" + node.Name()
		run(t, ns, podOn(node.Name(), name, "serve"), corev1.PodRunning)
		address := service(t, ns, name)
		for _, from := range []*Node{shared, n} {
			answers(t, from, address, name)
			p := podOn(from.Name(), name+"-from-"+from.Name(), "get", "http://"+address)
			run(t, ns, p, corev1.PodSucceeded)
			if got := logOf(t, ns, p.Name); got != name {
				t.Errorf("pod %s has got %q, want %q", p.Name, got, name)
			}
		}
		body, err := client(t).CoreV1().Pods(ns).ProxyGet("http", name, "8080", "/", nil).DoRaw(t.Context())
		if err != nil || string(body) != name {
			t.Errorf("through the API server's proxy: %q, %v", body, err)
		}
		body, err = client(t).CoreV1().Services(ns).ProxyGet("http", name, "80", "/", nil).DoRaw(t.Context())
		if err != nil || string(body) != name {
			t.Errorf("through the API server's proxy for services: %q, %v", body, err)
		}
	}
}

// service makes one for the pods with the label, and returns its address.
func service(t *testing.T, namespace, app string) string {
	t.Helper()
	made, err := client(t).CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": app},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Spec.ClusterIP
}

// answers waits until an address answers with a text, from inside of a node.
func answers(t *testing.T, from *Node, address, want string) {
	t.Helper()
	http := &http.Client{Transport: &http.Transport{DialContext: from.Dial, DisableKeepAlives: true}}
	testkit.Eventually(t, "the service to lead to the pod from "+from.Name(), func(ctx context.Context) error {
		request, err := newGet(ctx, "http://"+address)
		if err != nil {
			return err
		}
		response, err := http.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err == nil && string(body) != want {
			err = fmt.Errorf("it says %q", body)
		}
		return err
	})
}

func newGet(ctx context.Context, url string) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
}

// TestNodesHaveNamesOfTheirOwn, and what a node was called is free when it has gone.
func TestNodesHaveNamesOfTheirOwn(t *testing.T) {
	labNode(t)
	if _, err := Start(t.Context(), Options{Plane: sharedPlane, Name: DefaultName}); err == nil || !strings.Contains(err.Error(), "one that is called "+DefaultName) {
		t.Errorf("a second %s: %v, want an error that says so", DefaultName, err)
	}
	a, b := &Node{options: Options{Plane: sharedPlane}}, &Node{options: Options{Plane: sharedPlane, Name: "chosen"}}
	for _, n := range []*Node{a, b} {
		if err := n.enrol(); err != nil {
			t.Fatal(err)
		}
		defer n.resign()
	}
	if a.name != DefaultName+"-2" || b.name != "chosen" || a.pods.Overlaps(b.pods) || shared.pods.Overlaps(a.pods) {
		t.Errorf("nodes %s with pods in %s and %s with pods in %s", a.name, a.pods, b.name, b.pods)
	}
	a.resign()
	c := &Node{options: Options{Plane: sharedPlane}}
	if err := c.enrol(); err != nil {
		t.Fatal(err)
	}
	defer c.resign()
	if c.name != a.name || c.pods != a.pods {
		t.Errorf("after %s in %s had gone there came %s in %s", a.name, a.pods, c.name, c.pods)
	}
}

// TestNodeGoesAlone: three nodes that have started at once are connected with each other,
// and when the first goes the others are still reached.
func TestNodeGoesAlone(t *testing.T) {
	labNode(t)
	p := planeForNode(t)
	started := make([]*Node, 3)
	var wg sync.WaitGroup
	for i := range started {
		wg.Go(func() {
			n, err := Start(t.Context(), Options{Plane: p})
			if err != nil {
				t.Error(err)
				return
			}
			started[i] = n
		})
	}
	wg.Wait()
	for _, n := range started {
		if n == nil {
			continue
		}
		defer func() {
			if err := n.Stop(); err != nil {
				t.Error(err)
			}
		}()
	}
	if t.Failed() {
		t.FailNow()
	}
	nodes := slices.Clone(networks.of[p].connected)
	if err := cables(t, nodes); err != nil {
		t.Error(err)
	}
	// The first, by which the apiserver reaches services.
	if err := nodes[0].Stop(); err != nil {
		t.Fatal(err)
	}
	if err := cables(t, nodes[1:]); err != nil {
		t.Error(err)
	}
	if n, err := networks.of[p].nodeFor("10.0.0.1:443"); err != nil || n != nodes[1] {
		t.Errorf("the way to a service leads through %p, %v, want %s at %p", n, err, nodes[1].Name(), nodes[1])
	}
	for _, n := range nodes[1:] {
		// Through the API server, which asks the kubelet.
		testkit.Eventually(t, "the kubelet of "+n.Name()+" to be asked", func(ctx context.Context) error {
			body, err := clientOf(t, p).CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + n.Name() + "/proxy/healthz").DoRaw(ctx)
			if err == nil && string(body) != "ok" {
				err = fmt.Errorf("it says %q", body)
			}
			return err
		})
	}
}

// TestFrozenNodeStandsStill, all of it and nothing else, until it thaws.
func TestFrozenNodeStandsStill(t *testing.T) {
	n := second(t)
	ns := namespace(t)
	run(t, ns, podOn(n.Name(), "server", "serve"), corev1.PodRunning)
	run(t, ns, pod("other", "serve"), corev1.PodRunning)
	if err := n.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	frozen := states(t, n)
	if len(frozen) < 5 { // kubelet, containerd, kube-proxy, a shim and two of the pod
		t.Errorf("%d processes of the node: %v", len(frozen), frozen)
	}
	for pid, state := range frozen {
		if state != "T" {
			t.Errorf("process %d of the frozen node is in state %s", pid, state)
		}
	}
	for pid, state := range states(t, shared) {
		if state == "T" {
			t.Errorf("process %d of the other node stands still", pid)
		}
	}
	if err := n.Thaw(); err != nil {
		t.Fatal(err)
	}
	body, err := client(t).CoreV1().Pods(ns).ProxyGet("http", "server", "8080", "/", nil).DoRaw(t.Context())
	if err != nil || string(body) != "server" {
		t.Errorf("after the thaw the pod says %q, %v", body, err)
	}
	if err := n.Freeze(t.Context()); err != nil { // and so it is stopped
		t.Fatal(err)
	}
}

// cables returns an error unless each of the nodes has one to each other, and no more.
func cables(t *testing.T, nodes []*Node) error {
	t.Helper()
	var errs []error
	for _, n := range nodes {
		var want, got []string
		for _, other := range nodes {
			if other != n {
				want = append(want, n.device(other))
			}
		}
		err := n.inside.inNetwork(func() error {
			links, err := netlink.LinkList()
			for _, link := range links {
				if strings.HasPrefix(link.Attrs().Name, "node-") {
					got = append(got, link.Attrs().Name)
				}
			}
			return err
		})
		slices.Sort(want)
		slices.Sort(got)
		if err == nil && !slices.Equal(want, got) {
			err = fmt.Errorf("%s has cables %q, want %q", n.Name(), got, want)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func states(t *testing.T, n *Node) map[int]string {
	t.Helper()
	processes, err := n.processes()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[int]string{}
	for pid, state := range processes {
		texts[pid] = string(state)
	}
	return texts
}
