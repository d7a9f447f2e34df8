package browser

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/run"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// realCluster is a control plane with two GPU nodes and a pod on one of them.
func realCluster(t *testing.T) *plane.Plane {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane: not with -short")
	}
	p, err := plane.Start(t.Context(), plane.Options{Progress: os.Stderr, Without: []string{plane.Scheduler, plane.KWOK}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	gpus := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{count.NVIDIA: *resource.NewQuantity(n, resource.DecimalSI)}
	}
	for _, name := range []string{"one", "two"} {
		if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: gpus(8), Allocatable: gpus(8)},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "train"},
		Spec: corev1.PodSpec{NodeName: "one", Containers: []corev1.Container{{
			Name: "c", Image: "busybox", Resources: corev1.ResourceRequirements{Limits: gpus(3)},
		}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return p
}

// control runs a controller until the test ends, and returns where it serves. Its end
// is no failure: with its API server gone a leader ends.
func control(t *testing.T, p *plane.Plane, change func(*run.Options)) (origin string) {
	t.Helper()
	o := run.DefaultOptions()
	o.Namespace, o.HTTPAddress = "default", "127.0.0.1:0"
	change(o)
	serving := make(chan string, 1)
	o.Serving = func(address string) { serving <- address }
	logger, _ := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	var wg sync.WaitGroup
	ended := make(chan error, 1)
	wg.Go(func() { ended <- run.Control(ctx, p.Config(), o) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	select {
	case address := <-serving:
		return "http://" + address
	case err := <-ended:
		t.Fatalf("the controller has ended: %v", err)
		return ""
	}
}

// counted waits until the page has the numbers of the real cluster.
func (b *tab) counted() {
	b.Helper()
	for b.run(chromedp.Navigate(b.origin + "/")); !eval[bool](b, `document.querySelector('#requested')?.textContent === '3'`); {
		b.run(chromedp.Sleep(100_000_000), chromedp.Reload())
		if b.ctx.Err() != nil {
			b.Fatal(b.ctx.Err())
		}
	}
	b.drawn()
	if got := b.cells(); got["c1"]+got["c2"]+got["c3"]+got["c4"]+got["c5"]+got["c6"]+got["c7"]+got["c8"] != 3 {
		b.Errorf("cells %v", got)
	}
}

// TestAReplicaThatDoesNotLead has the page all the same, for a Service sends readers to
// any; and as little of the cluster in its metrics as ever.
func TestAReplicaThatDoesNotLead(t *testing.T) {
	p := realCluster(t)
	client, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	now, holder, long := metav1.NowMicro(), "another", int32(3600)
	if _, err := client.CoordinationV1().Leases("default").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-summary-controller"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &long, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b := open(t, control(t, p, func(o *run.Options) {
		if err := o.LeaderElect.Set("true"); err != nil {
			t.Fatal(err)
		}
	}))
	b.expected = []string{"status of 503"} // until its caches are complete
	b.counted()
	res, err := http.Get(b.origin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\ngpu_summary_leader 0\n") || strings.Contains(string(text), "\ngpu_summary_requested_devices") {
		t.Error("it leads, or its metrics have capacity in them")
	}
}

// TestTheAPIServerIsGone: the page says in red that its numbers are old, and why, and
// how old; and that it is over when it is.
func TestTheAPIServerIsGone(t *testing.T) {
	p := realCluster(t)
	b := open(t, control(t, p, func(*run.Options) {}))
	b.expected = []string{"status of 503"}
	b.counted()
	if eval[bool](b, `document.querySelector('#stale .alarm') !== null`) {
		t.Error("stale from the start")
	}
	server := p.Component(plane.APIServer)
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until("the page to call itself stale", `document.querySelector('#stale .alarm')?.textContent.match(/Stale\. The numbers below are those of .* UTC, \d+ (s|min) old:\s+watch of pods, nodes(, \w+)*: the API server does not answer\./)`)
	if got := eval[string](b, `getComputedStyle(document.querySelector('#stale .alarm')).color`); got != "rgb(179, 38, 30)" {
		t.Errorf("it is not said in red but in %s", got)
	}
	if got := b.number("#requested"); got != 3 {
		t.Errorf("the numbers are gone: %d", got)
	}
	b.shot("stale")
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until("fresh again", `!document.querySelector('#stale .alarm')`)
}
