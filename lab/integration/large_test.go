package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/run"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// TestTwentyThousandNodes with names of 51 characters are published completely and
// read back completely; then ten are left, and one object each.
func TestTwentyThousandNodes(t *testing.T) {
	const nodes, left = 20_000, 10
	p, err := plane.Start(t.Context(), plane.Options{Without: []string{plane.KWOK, plane.Scheduler, plane.ControllerManager}})
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
	e := &env{T: t, plane: p, client: client, namespace: "default"}
	e.client = e.protobuf()

	e.start(func(_ *rest.Config, o *run.Options) { o.Settle = time.Second })
	r := e.read(time.Second, "gpu-summary", "gpu-capacity")
	want := map[string]string{}
	names := make([]string, nodes)
	for i := range names {
		names[i] = fmt.Sprintf("gpu-%s-%06d", strings.Repeat("x", 40), i)
		want[names[i]] = "0"
	}
	begun := time.Now()
	e.each(names, func(name string) error { return e.bareNode(name) })
	t.Logf("%d nodes within %v", nodes, time.Since(begun))
	e.bareNodesArePublished(want, true)
	t.Logf("all of it published %v after the first node", time.Since(begun))

	begun = time.Now()
	e.each(names[left:], func(name string) error {
		return e.client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{})
	})
	t.Logf("%d deleted within %v", nodes-left, time.Since(begun))
	maps.DeleteFunc(want, func(name string, _ string) bool { return name >= names[left] })
	e.bareNodesArePublished(want, false)
	e.eventually("one object each", func() error {
		if got := e.published(); !slices.Equal(got, []string{"gpu-capacity", "gpu-summary"}) {
			return fmt.Errorf("there are %d: %q", len(got), got[:min(len(got), 10)])
		}
		return nil
	})
	r.end()
	t.Logf("readers found a whole set %d times and were sent back %d times", r.whole, r.moving)
	if r.whole == 0 {
		t.Error("nobody could ever read")
	}
}

func (e *env) bareNodesArePublished(want map[string]string, sharded bool) {
	e.Helper()
	summary := e.whole(want)
	var capacity *published
	e.eventually("gpu-capacity", func() (err error) {
		if capacity, err = readPublished(e.Context(), e.client.CoreV1().ConfigMaps(e.namespace), "gpu-capacity"); err != nil {
			return err
		}
		got := map[string]string{}
		for _, row := range capacity.nodes {
			if row.Allocatable != 8 || row.Resource != count.NVIDIA {
				return fmt.Errorf("a row is %+v", row)
			}
			got[row.Node] = "0"
		}
		if len(capacity.nodes) != len(got) {
			return errors.New("a node is there twice")
		}
		return sameRows(want, got)
	})
	for name, p := range map[string]*published{"gpu-summary": summary, "gpu-capacity": capacity} {
		e.Logf("%s: %d shards", name, p.shards)
		if sharded != (p.shards > 0) {
			e.Errorf("%s has %d shards", name, p.shards)
		}
	}
}

// bareNode creates a node that nothing will ever run on.
func (e *env) bareNode(name string) error {
	list := corev1.ResourceList{count.NVIDIA: *resource.NewQuantity(8, resource.DecimalSI)}
	_, err := e.client.CoreV1().Nodes().Create(e.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: list, Allocatable: list},
	}, metav1.CreateOptions{})
	return err
}

// each does something to every name, sixteen at a time.
func (e *env) each(names []string, do func(name string) error) {
	e.Helper()
	ctx, cancel := context.WithCancelCause(e.Context())
	defer cancel(nil)
	work := make(chan string)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for name := range work {
				if err := do(name); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, name := range names {
		if ctx.Err() == nil {
			work <- name
		}
	}
	close(work)
	wg.Wait()
	e.must(context.Cause(ctx))
}
