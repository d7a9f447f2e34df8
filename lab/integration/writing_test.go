package integration

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// TestFiftyUpdatesAreAHandfulOfPasses: however often one pod is touched, the loop
// runs once per settle window.
func TestFiftyUpdatesAreAHandfulOfPasses(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 64)
	c := e.start(func(_ *rest.Config, o *run.Options) { o.Settle = time.Second })
	e.shows("gpu-1=0")
	c.quiet()

	before := c.passes()
	for i := range 50 {
		e.bound(fmt.Sprintf("p-%d", i), "gpu-1", 1)
	}
	begun := time.Now()
	e.shows("gpu-1=50")
	// A window's first key and the one that waits for its end, for as many windows
	// as there were, and the echo of each write.
	took := time.Since(begun)
	most := 3 * (took.Seconds() + 3)
	if passes := c.passes() - before; passes > most || passes < 1 {
		t.Errorf("%v passes for 50 changes within %v, want at most %.0f", passes, took, most)
	}

	c.quiet()
	before = c.passes()
	for i := range 50 {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"a":"%d"}}}`, i)
		_, err := e.client.CoreV1().Pods(e.namespace).Patch(t.Context(), "p-0", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		e.must(err)
	}
	c.quiet()
	if passes := c.passes() - before; passes != 0 {
		t.Errorf("%v passes for 50 new labels, want none", passes)
	}
}

// TestNothingIsWrittenWhenNothingChanges: half a minute of heartbeats, of pods
// without GPUs and of labels on pods with some.
func TestNothingIsWrittenWhenNothingChanges(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.node("gpu-2", 8)
	e.bound("gpu", "gpu-1", 2)
	var w wire
	c := e.start(w.through)
	cm := e.shows("gpu-1=2 gpu-2=0")
	c.quiet()
	passes, writes := c.passes(), w.read(func(w *wire) int { return w.writes })

	events := 0
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); events++ {
		e.heartbeat("gpu-1")
		e.bound(fmt.Sprintf("cpu-%d", events), "gpu-2", 0)
		patch := fmt.Sprintf(`{"metadata":{"labels":{"a":"%d"}}}`, events)
		_, err := e.client.CoreV1().Pods(e.namespace).Patch(t.Context(), "gpu", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		e.must(err)
		if events > 0 {
			e.remove(fmt.Sprintf("cpu-%d", events-1))
		}
	}
	now, err := e.configMap()
	e.must(err)
	if now.ResourceVersion != cm.ResourceVersion {
		t.Errorf("resourceVersion went from %s to %s during %d rounds of nothing", cm.ResourceVersion, now.ResourceVersion, events)
	}
	if n := w.read(func(w *wire) int { return w.writes }) - writes; n != 0 {
		t.Errorf("%d writes were sent", n)
	}
	if n := c.passes() - passes; n != 0 {
		t.Errorf("%v passes were made", n)
	}
	t.Logf("%d rounds", events)
}

// heartbeat is what a kubelet says every few minutes, and most of what is heard
// from a node.
func (e *env) heartbeat(node string) {
	e.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	_, err := e.client.CoreV1().Nodes().PatchStatus(e.Context(), node, []byte(patch))
	e.must(err)
}

// TestAForeignEditIsHealed: within the settle window and one write.
func TestAForeignEditIsHealed(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.bound("a", "gpu-1", 2)
	var w wire
	c := e.start(w.through)
	e.shows("gpu-1=2")

	for name, vandalise := range map[string]func(*corev1.ConfigMap){
		"another number": func(cm *corev1.ConfigMap) { cm.Data["gpu-1"] = "8" },
		"another key":    func(cm *corev1.ConfigMap) { cm.Data["gpu-9"] = "1" },
		"no data":        func(cm *corev1.ConfigMap) { cm.Data = nil },
		"another total":  func(cm *corev1.ConfigMap) { cm.Annotations[publish.AnnotationRequested] = "0" },
		"no label":       func(cm *corev1.ConfigMap) { cm.Labels = nil },
	} {
		c.quiet()
		writes := w.read(func(w *wire) int { return w.writes })
		cm, err := e.configMap()
		e.must(err)
		good := cm.DeepCopy()
		vandalise(cm)
		_, err = e.client.CoreV1().ConfigMaps(e.namespace).Update(t.Context(), cm, metav1.UpdateOptions{})
		e.must(err)
		e.eventually("healing of "+name, func() error { return e.sameAs(good) })
		if n := w.read(func(w *wire) int { return w.writes }) - writes; n != 1 {
			t.Errorf("%s: healed by %d writes, want 1", name, n)
		}
	}

	c.quiet()
	e.must(e.client.CoreV1().ConfigMaps(e.namespace).Delete(t.Context(), "gpu-summary", metav1.DeleteOptions{}))
	e.shows("gpu-1=2")
}

func (e *env) sameAs(want *corev1.ConfigMap) error {
	got, err := e.configMap()
	if err != nil {
		return err
	}
	if err := sameRows(want.Data, got.Data); err != nil {
		return err
	}
	for key, value := range want.Annotations {
		if key != publish.AnnotationObserved && got.Annotations[key] != value {
			return fmt.Errorf("annotation %s is %q, want %q", key, got.Annotations[key], value)
		}
	}
	if len(got.Labels) == 0 {
		return fmt.Errorf("no label")
	}
	return nil
}

// TestOthersAnnotationsStay: what is not ours is none of our business.
func TestOthersAnnotationsStay(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.start()
	cm := e.shows("gpu-1=0")
	cm.Annotations["example.com/owner"] = "team-a"
	_, err := e.client.CoreV1().ConfigMaps(e.namespace).Update(t.Context(), cm, metav1.UpdateOptions{})
	e.must(err)
	e.bound("a", "gpu-1", 2)
	if cm := e.shows("gpu-1=2"); cm.Annotations["example.com/owner"] != "team-a" {
		t.Errorf("an annotation of others is gone: %v", cm.Annotations)
	}
}

// TestAConflictIsRequeued: somebody is faster than our write. It is refused, not
// forced, and the next pass starts from what is there now.
func TestAConflictIsRequeued(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	var once sync.Once
	var w wire
	c := e.start(w.through)
	e.shows("gpu-1=0")
	c.quiet()
	retries := c.metric("workqueue_retries_total", `name="gpu-summary"`)
	w.mu.Lock()
	w.onWrite = func(int) {
		once.Do(func() {
			patch := `{"metadata":{"annotations":{"example.com/faster":"yes"}}}`
			if _, err := e.client.CoreV1().ConfigMaps(e.namespace).Patch(t.Context(), "gpu-summary", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Errorf("patch: %v", err)
			}
		})
	}
	w.mu.Unlock()
	writes := w.read(func(w *wire) int { return w.writes })

	e.bound("a", "gpu-1", 2)
	cm := e.shows("gpu-1=2")
	if cm.Annotations["example.com/faster"] != "yes" {
		t.Error("the write went over the other one")
	}
	if n := w.read(func(w *wire) int { return w.writes }) - writes; n < 2 {
		t.Errorf("%d writes: the first was not refused", n)
	}
	if n := c.metric("workqueue_retries_total", `name="gpu-summary"`) - retries; n < 1 {
		t.Errorf("%v retries: the conflict did not go through the queue", n)
	}
}

// TestResyncChangesNothing: every second everything is looked at again, and
// nothing comes of it.
func TestResyncChangesNothing(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.bound("a", "gpu-1", 2)
	var w wire
	c := e.start(w.through, func(_ *rest.Config, o *run.Options) { o.Resync = time.Second })
	cm := e.shows("gpu-1=2")
	passes := c.passes()
	e.eventually("ten passes nobody asked for", func() error {
		if n := c.passes() - passes; n < 10 {
			return fmt.Errorf("%v passes", n)
		}
		return nil
	})
	now, err := e.configMap()
	e.must(err)
	if now.ResourceVersion != cm.ResourceVersion {
		t.Errorf("a resync wrote: resourceVersion went from %s to %s", cm.ResourceVersion, now.ResourceVersion)
	}
}
