package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// live is a cache for publishers without informers: it asks the server.
type live struct{ *env }

func (l live) Published(name string) (*corev1.ConfigMap, string) {
	cm, err := l.client.CoreV1().ConfigMaps(l.namespace).Get(l.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, ""
	}
	return cm, cm.ResourceVersion
}

func (l live) AllPublished() (all []*corev1.ConfigMap) {
	list, err := l.client.CoreV1().ConfigMaps(l.namespace).List(l.Context(), metav1.ListOptions{LabelSelector: publish.Selector("gpu-summary")})
	l.must(err)
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

func (e *env) publisher(change func(*publish.Options)) *publish.Publisher {
	o := publish.Options{Namespace: e.namespace, Name: "gpu-summary", CapacityName: "gpu-capacity"}
	change(&o)
	return publish.New(e.client.CoreV1(), o, live{e})
}

// names of all that is published.
func (e *env) published() []string {
	var names []string
	for _, cm := range (live{e}).AllPublished() {
		names = append(names, cm.Name)
	}
	return slices.Sorted(slices.Values(names))
}

// whole waits until the readers' recipe gives exactly these rows.
func (e *env) whole(want map[string]string) *published {
	e.Helper()
	var p *published
	e.eventually(fmt.Sprintf("%d rows", len(want)), func() (err error) {
		if p, err = readPublished(e.Context(), e.client.CoreV1().ConfigMaps(e.namespace), "gpu-summary"); err != nil {
			return err
		}
		return sameRows(want, p.rows)
	})
	return p
}

// TestEachResourceHasItsConfigMap, for as long as it is asked for.
func TestEachResourceHasItsConfigMap(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	list := corev1.ResourceList{"amd.com/gpu": *resource.NewQuantity(4, resource.DecimalSI)}
	_, err := e.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "amd-1"}, Status: corev1.NodeStatus{Capacity: list, Allocatable: list},
	}, metav1.CreateOptions{})
	e.must(err)
	first := e.start(func(_ *rest.Config, o *run.Options) { o.Resources = []string{"amd.com/gpu"} })
	e.shows("gpu-1=0")
	e.eventually("what AMD has", func() error {
		cm, _ := live{e}.Published("gpu-summary.amd.com.gpu")
		if cm == nil {
			return errors.New("there is none")
		}
		if cm.Annotations[publish.AnnotationResource] != "amd.com/gpu" || cm.Annotations[publish.AnnotationAllocatable] != "4" {
			return fmt.Errorf("annotations are %v", cm.Annotations)
		}
		return sameRows(map[string]string{"amd-1": "0"}, cm.Data)
	})
	e.eventually("both in gpu-capacity", func() error {
		p, err := readPublished(t.Context(), e.client.CoreV1().ConfigMaps(e.namespace), "gpu-capacity")
		if err == nil && (len(p.nodes) != 2 || p.nodes[0].Node != "amd-1" || p.nodes[1].Allocatable != 8) {
			err = fmt.Errorf("it has %+v", p.nodes)
		}
		return err
	})
	first.stop()
	e.start(func(_ *rest.Config, o *run.Options) { o.CapacityName = "" })
	e.eventually("what nobody asks for any more to go", func() error {
		if got := e.published(); !slices.Equal(got, []string{"gpu-summary"}) {
			return fmt.Errorf("there are %q", got)
		}
		return nil
	})
}

// TestTwoControllersInOneNamespace leave each other alone.
func TestTwoControllersInOneNamespace(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// client-go has one registry of informers in a process, so this is another one.
	cmd := exec.CommandContext(ctx, path, "--kubeconfig", e.kubeconfig(e.plane.Config()), "--http-address=127.0.0.1:0",
		"--name=other", "--capacity-name=other-capacity")
	e.must(cmd.Start())
	defer func() { cancel(); _ = cmd.Wait() }()
	e.shows("gpu-1=0")
	e.bound("a", "gpu-1", 2)
	e.shows("gpu-1=2")
	e.eventually("the other", func() error {
		cm, err := e.client.CoreV1().ConfigMaps(e.namespace).Get(t.Context(), "other", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return sameRows(map[string]string{"gpu-1": "2"}, cm.Data)
	})
	if got := e.published(); !slices.Equal(got, []string{"gpu-capacity", "gpu-summary"}) {
		t.Errorf("the first has %q", got)
	}
}

// TestAConfigMapThatWasThereBefore has no label of ours, so no cache shows it.
func TestAConfigMapThatWasThereBefore(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	_, err := e.client.CoreV1().ConfigMaps(e.namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-summary", Labels: map[string]string{"app": "x"}}, Data: map[string]string{"README": "hello"},
	}, metav1.CreateOptions{})
	e.must(err)
	e.start()
	if cm := e.shows("gpu-1=0"); cm.Labels["app"] != "x" || cm.Labels[publish.LabelInstance] != "gpu-summary" {
		t.Errorf("labels are %v", cm.Labels)
	}
}

// TestOlderNeverReplacesNewer on a real server's versions.
func TestOlderNeverReplacesNewer(t *testing.T) {
	e := newEnv(t)
	snap := func(requested int64) *count.Snapshot {
		pods, err := e.client.CoreV1().Pods(e.namespace).List(t.Context(), metav1.ListOptions{})
		e.must(err)
		return &count.Snapshot{
			Observed: count.Observed{Pods: pods.ResourceVersion},
			Rows:     []count.Row{{Node: "gpu-1", Resource: count.NVIDIA, Numbers: count.Numbers{Requested: requested}}},
		}
	}
	old := snap(1)
	e.create(e.pod("a", 1)) // so that versions move on
	p := e.publisher(func(*publish.Options) {})
	publishes := func(what string, s *count.Snapshot, want error) {
		t.Helper()
		if _, err := p.Publish(t.Context(), s); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	publishes("the first", snap(2), nil)
	publishes("an older one", old, publish.ErrBehind)
	publishes("a newer one", snap(3), nil)
	for i, bogus := range []string{"pods@999999999", "pods@99999999999999999999999", "pods@-1", "rubbish", ""} {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, publish.AnnotationObserved, bogus)
		for _, name := range []string{"gpu-summary", "gpu-capacity"} {
			_, err := e.client.CoreV1().ConfigMaps(e.namespace).Patch(t.Context(), name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
			e.must(err)
		}
		publishes("after "+bogus, snap(int64(4+i)), nil)
	}
}

// TestABogusObservationBlocksForNoLongerThanTheNextEvent: this one could be true.
func TestABogusObservationBlocksForNoLongerThanTheNextEvent(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.start()
	cm := e.shows("gpu-1=0")
	cm.Annotations[publish.AnnotationObserved] = "pods@" + cm.ResourceVersion
	_, err := e.client.CoreV1().ConfigMaps(e.namespace).Update(t.Context(), cm, metav1.UpdateOptions{})
	e.must(err)
	e.bound("a", "gpu-1", 2)
	e.shows("gpu-1=2")
}

// TestForeignEditsOfShardsAreHealed, each by one write.
func TestForeignEditsOfShardsAreHealed(t *testing.T) {
	e := newEnv(t)
	want := map[string]string{}
	for i := range 60 {
		name := fmt.Sprintf("gpu-%02d", i)
		e.node(name, 8)
		want[name] = "0"
	}
	var w wire
	c := e.start(w.through, smallObjects)
	if p := e.whole(want); p.shards < 2 {
		t.Fatalf("60 nodes are on %d shards", p.shards)
	}
	for name, vandalise := range map[string]func(*corev1.ConfigMap){
		"another number": func(cm *corev1.ConfigMap) {
			for key := range cm.Data {
				cm.Data[key] = "9"
			}
		},
		"no data":        func(cm *corev1.ConfigMap) { cm.Data = nil },
		"no annotations": func(cm *corev1.ConfigMap) { cm.Annotations = nil },
		"no labels":      func(cm *corev1.ConfigMap) { cm.Labels = nil },
		"deleted":        nil,
	} {
		c.quiet()
		writes := w.read(func(w *wire) int { return w.writes })
		const shard = "gpu-summary-shard-0002"
		good, _ := live{e}.Published(shard)
		if vandalise == nil {
			e.must(e.client.CoreV1().ConfigMaps(e.namespace).Delete(t.Context(), shard, metav1.DeleteOptions{}))
		} else {
			bad := good.DeepCopy()
			vandalise(bad)
			_, err := e.client.CoreV1().ConfigMaps(e.namespace).Update(t.Context(), bad, metav1.UpdateOptions{})
			e.must(err)
		}
		e.eventually("healing of "+name, func() error {
			now, _ := live{e}.Published(shard)
			if now == nil || !maps.Equal(now.Data, good.Data) || !maps.Equal(now.Annotations, good.Annotations) || !maps.Equal(now.Labels, good.Labels) {
				return fmt.Errorf("it is %v", now)
			}
			return nil
		})
		if n := w.read(func(w *wire) int { return w.writes }) - writes; n != 1 {
			t.Errorf("%s: healed by %d writes, want 1", name, n)
		}
	}
}

// smallObjects is for clusters that are large with sixty nodes.
func smallObjects(_ *rest.Config, o *run.Options) { o.MaxObjectBytes = 1 << 10 }

// TestACrashBetweenShards: the wire refuses after the n-th write of a change that
// touches every shard, and the controller ends. Whoever reads meanwhile gets the
// whole of the state before, or is told to read again; a restart makes it right.
func TestACrashBetweenShards(t *testing.T) {
	e := newEnv(t)
	want := map[string]string{}
	for i := range 60 {
		name := fmt.Sprintf("gpu-%02d", i)
		e.node(name, 64)
		want[name] = "0"
	}
	first := e.start(smallObjects)
	e.whole(want)
	first.stop()
	r := e.read(5*time.Millisecond, "gpu-summary", "gpu-capacity")
	for n := range 6 {
		for name := range want {
			e.bound(fmt.Sprintf("%s-%d", name, n), name, 1)
			want[name] = fmt.Sprint(n + 1)
		}
		w := wire{refuseAfter: 1 + 2*n}
		crashed := e.start(w.through, smallObjects)
		e.eventually("a refusal", func() error {
			if w.read(func(w *wire) int { return w.refused }) == 0 {
				return errors.New("none yet")
			}
			return nil
		})
		crashed.stop()
		p, err := readPublished(context.Background(), e.client.CoreV1().ConfigMaps(e.namespace), "gpu-summary")
		if err == nil && sameRows(want, p.rows) == nil && n == 0 {
			t.Error("one write was enough for all: nothing was tested")
		}
		restarted := e.start(smallObjects)
		e.whole(want)
		restarted.stop()
	}
	r.end()
	t.Logf("readers found a whole set %d times and were sent back %d times", r.whole, r.moving)
	if r.whole == 0 || r.moving == 0 {
		t.Error("one of the two never happened")
	}
}
