package watch

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2/ktesting"
)

// TestPosition: what is left out moves the position and not the version, and a store
// that has not come to what was handed on is no further than it is.
func TestPosition(t *testing.T) {
	var p position
	if got := p.of("5"); got != "5" {
		t.Errorf("before anything: %s", got)
	}
	p.pass("10")
	p.see([]byte("12"))
	p.see(nil)
	for version, want := range map[string]string{"10": "12", "9": "9", "": ""} {
		if got := p.of(version); got != want {
			t.Errorf("a store at %q is complete up to %q, want %q", version, got, want)
		}
	}
	p.pass("13")
	for version, want := range map[string]string{"10": "10", "13": "13"} {
		if got := p.of(version); got != want {
			t.Errorf("after another event, a store at %q is complete up to %q, want %q", version, got, want)
		}
	}
}

// TestTrack: a typed client's bookmarks move the position and go no further. Whoever
// stops listening leaves nothing behind.
func TestTrack(t *testing.T) {
	var p position
	inner := apiwatch.NewFake()
	w := p.track(inner, true, &stats{})
	of := func(version string, annotations map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Annotations: annotations}}
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		inner.Add(of("3", nil)) // an initial event: its version is no position
		inner.Action(apiwatch.Bookmark, of("7", map[string]string{metav1.InitialEventsAnnotationKey: "true"}))
		inner.Action(apiwatch.Bookmark, of("8", nil))
		inner.Modify(of("9", nil))
		inner.Action(apiwatch.Bookmark, of("20", nil))
		inner.Modify(of("30", nil))
	}()
	take := func(want apiwatch.EventType) {
		if event := <-w.ResultChan(); event.Type != want {
			t.Fatalf("got %s, want %s", event.Type, want)
		}
	}
	take(apiwatch.Added)
	if got := p.of("3"); got != "3" {
		t.Errorf("after an initial event: %s", got)
	}
	take(apiwatch.Bookmark)
	take(apiwatch.Modified)
	<-sent // the next one nobody takes
	w.Stop()
	w.Stop()
	for range w.ResultChan() {
		continue // until it is closed
	}
}

// TestIrrelevantEventsMoveThePositionOnly: a heartbeat or a pod without a GPU is no
// change and no reason to do anything; a watch that breaks is taken up behind it.
func TestIrrelevantEventsMoveThePositionOnly(t *testing.T) {
	pods, nodes := clusterOf(3, 2, 1)
	var h heard
	s := newAPIServer(t, pods, nodes, func(*apiServer) {})
	w := s.start(&h)
	send := func(event apiwatch.EventType, pod *corev1.Pod, version string) {
		out := &wire{}
		pod.ResourceVersion = version
		out.send(t, event, pod)
		s.events["pods"] <- out.Bytes()
	}
	reaches := func(version, position string) {
		t.Helper()
		_, ctx := ktesting.NewTestContext(t)
		deadline := time.Now().Add(time.Minute)
		for ctx.Err() == nil && time.Now().Before(deadline) {
			if w.pods.version() == version && w.pods.complete() == position {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("the store is at %s and complete up to %s, want %s and %s", w.pods.version(), w.pods.complete(), version, position)
	}
	reaches("1000000", "1000000")
	gpu := pods[0].(*corev1.Pod).DeepCopy()
	gpu.Spec.NodeName = "elsewhere"
	send(apiwatch.Modified, gpu, "1000001")
	reaches("1000001", "1000001")
	before := h.heardOf(t, 5) // three pods, a node, a change

	other := pods[4].(*corev1.Pod).DeepCopy()
	send(apiwatch.Modified, other, "1000002")
	send(apiwatch.Added, gpuPod("cpu", "n", 0), "1000003")
	send(apiwatch.Bookmark, bookmark("", false), "1000004")
	reaches("1000001", "1000004")
	if n := h.other.Load() - before; n != 0 {
		t.Errorf("handlers heard of %d changes", n)
	}
	s.CloseClientConnections()
	gpu.Spec.NodeName = "back"
	send(apiwatch.Modified, gpu, "1000005")
	reaches("1000005", "1000005")
	s.mu.Lock()
	resumed := s.resumed
	s.mu.Unlock()
	if !strings.Contains(strings.Join(resumed, " "), "pods@1000004") {
		t.Errorf("watches were taken up at %q, want pods@1000004", resumed)
	}
	// What no longer asks for a GPU leaves at once, and handlers hear of it.
	before = h.heardOf(t, before+1)
	gpu.Spec.Containers = nil
	send(apiwatch.Modified, gpu, "1000006")
	reaches("1000006", "1000006")
	if n := len(w.pods.informer.GetStore().ListKeys()); n != 2 {
		t.Errorf("%d pods are kept, want 2", n)
	}
	h.heardOf(t, before+1)
}

// heardOf waits until as many changes have been heard of, at least.
func (h *heard) heardOf(t *testing.T, changes int64) int64 {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if n := h.other.Load(); n >= changes {
			return n
		}
		if time.Now().After(deadline) {
			t.Fatalf("handlers have heard of %d changes, want %d", h.other.Load(), changes)
		}
	}
}

// TestInitialEventsAreNoPositions: they come in any order, with the versions of the
// objects.
func TestInitialEventsAreNoPositions(t *testing.T) {
	var p position
	w := &wire{}
	w.send(t, apiwatch.Added, gpuPod("a", "n", 1))
	w.send(t, apiwatch.Added, gpuPod("cpu", "n", 0))
	s := newStream(podKind(gpus), io.NopCloser(w), newKnown(), &p)
	s.initial = true
	for range 2 {
		if _, _, err := s.Decode(); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if p.passed != "" || len(p.seen) != 0 {
		t.Errorf("a position of %q, %q", p.passed, p.seen)
	}
}

// TestWhatAListHasIsKnown: a pod that came with a list leaves when it stops counting.
func TestWhatAListHasIsKnown(t *testing.T) {
	pods, nodes := clusterOf(2, 0, 1)
	var h heard
	s := newAPIServer(t, pods, nodes, func(s *apiServer) { s.noWatchList = true })
	w := s.start(&h)
	before := h.heardOf(t, 3)
	out, pod := &wire{}, pods[0].(*corev1.Pod).DeepCopy()
	pod.Spec.Containers, pod.ResourceVersion = nil, "1000001"
	out.send(t, apiwatch.Modified, pod)
	s.events["pods"] <- out.Bytes()
	h.heardOf(t, before+1)
	if keys := w.pods.informer.GetStore().ListKeys(); len(keys) != 1 {
		t.Errorf("%q are kept, want one", keys)
	}
}
