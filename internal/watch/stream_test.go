package watch

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

var schemaNone = schema.GroupVersionKind{}

func defaultNames() []string { return count.DefaultNames() }

func countedNames(t testing.TB) count.Names {
	names, err := count.ParseNames(counted...)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// wire is what a server sends.
type wire struct {
	bytes.Buffer
	json bool
}

func (w *wire) send(t *testing.T, event apiwatch.EventType, obj runtime.Object, change ...func([]byte) []byte) {
	t.Helper()
	object := encode(t, obj, w.json)
	for _, f := range change {
		object = f(object)
	}
	w.sendRaw(event, object)
}

func (w *wire) sendRaw(event apiwatch.EventType, object []byte) {
	if w.json {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": event, "object": json.RawMessage(object)})
		return
	}
	raw := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), object)
	frame := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), string(event))
	frame = protowire.AppendBytes(protowire.AppendTag(frame, 2, protowire.BytesType), raw)
	_ = binary.Write(w, binary.BigEndian, uint32(len(frame)))
	_, _ = w.Write(frame)
}

// read reads to the end.
func read[R record](t *testing.T, k *kind[R], from io.Reader) (events []apiwatch.Event) {
	t.Helper()
	var known *known
	if k.counts != nil {
		known = newKnown()
	}
	s := newStream(k, io.NopCloser(from), known, &position{})
	for {
		event, obj, err := s.Decode()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, apiwatch.Event{Type: event, Object: obj})
	}
}

const randomObjects = 1200

// TestNoGPUIsMissed: what comes through the stream is, record for record, what
// decoding everything gives, for objects that have anything in any field, in
// protobuf and JSON, with and without fields that are not known yet.
func TestNoGPUIsMissed(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	names := countedNames(t)
	for _, asJSON := range []bool{false, true} {
		m, w := newMaker(seed), &wire{json: asJSON}
		pods := podKind(names)
		var want []*podRecord
		waits, named := make(map[count.Wait]int), 0
		for i := range randomObjects {
			pod := m.pod(i)
			if !asJSON && i%3 == 0 {
				w.send(t, apiwatch.Added, pod, func(b []byte) []byte { return fromTheFuture(t, b) })
			} else {
				w.send(t, apiwatch.Added, pod)
			}
			if r, err := pods.trim(received(t, pod, asJSON)); err != nil {
				t.Fatal(err)
			} else if r.counts() {
				want = append(want, r)
				waits[r.Wait]++
				named += len(r.Models(count.NVIDIA))
			}
		}
		if len(waits) != 1+len(count.Waits) || named < 10 {
			t.Fatalf("pods wait for %v, and name %d models: not for every reason, or too few", waits, named)
		}
		got := read(t, podKind(names), &w.Buffer)
		if len(got) != len(want) || len(want) < randomObjects/10 || len(want) > randomObjects*9/10 {
			t.Fatalf("json %v: %d of %d pods, want %d", asJSON, len(got), randomObjects, len(want))
		}
		for i := range want {
			if !same(got[i].Object, want[i]) {
				t.Fatalf("json %v: got %+v, want %+v", asJSON, got[i].Object, want[i])
			}
		}
	}
}

// TestNodesAreReadAsTheyAre: as TestNoGPUIsMissed. Every node is kept.
func TestNodesAreReadAsTheyAre(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	names := countedNames(t)
	for _, asJSON := range []bool{false, true} {
		m, w := newMaker(seed), &wire{json: asJSON}
		nodes := nodeKind(names)
		var want []runtime.Object
		for i := range randomObjects / 4 {
			node := m.node(i)
			if !asJSON && i%3 == 0 {
				w.send(t, apiwatch.Modified, node, func(b []byte) []byte { return fromTheFuture(t, b) })
			} else {
				w.send(t, apiwatch.Modified, node)
			}
			r, err := nodes.trim(received(t, node, asJSON))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, r)
		}
		got := read(t, nodeKind(names), &w.Buffer)
		if len(got) != len(want) {
			t.Fatalf("json %v: %d nodes, want %d", asJSON, len(got), len(want))
		}
		for i := range want {
			if !same(got[i].Object, want[i]) {
				t.Fatalf("json %v: got %+v, want %+v", asJSON, got[i].Object, want[i])
			}
		}
	}
}

// TestEvidence: a text is found wherever it stands, and nothing that only looks
// like one.
func TestEvidence(t *testing.T) {
	names := countedNames(t)
	e := newEvidence(names.Evidence())
	r := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		raw := make([]byte, r.IntN(200))
		for i := range raw {
			raw[i] = "/.mgpu-ncoidva\x00\n"[r.IntN(16)]
		}
		want := false
		for _, text := range names.Evidence() {
			if r.IntN(30) == 0 {
				at := r.IntN(len(raw) + 1)
				raw = append(raw[:at:at], append([]byte(text), raw[at:]...)...)
			}
		}
		for _, text := range names.Evidence() {
			want = want || strings.Contains(string(raw), text)
		}
		if e.in(raw) != want {
			t.Fatalf("%q: %v, want %v", raw, !want, want)
		}
	}
}

func gpuPod(name, node string, gpus int64) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "7"}, Spec: corev1.PodSpec{NodeName: node}}
	if gpus > 0 {
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{count.NVIDIA: *resource.NewQuantity(gpus, resource.DecimalSI)},
		}}}
	}
	return p
}

func bookmark(version string, end bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	if end {
		p.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return p
}

// TestWhatBecomesOfEvents: only what counts is handed on, and what ceases to is
// handed on once more, as deleted.
func TestWhatBecomesOfEvents(t *testing.T) {
	finished := gpuPod("a", "n", 2)
	finished.Status.Phase = corev1.PodSucceeded
	annotated := gpuPod("note", "n", 0)
	annotated.Annotations = map[string]string{"wants": "nvidia.com/gpu"}
	steps := []struct {
		event apiwatch.EventType
		pod   *corev1.Pod
		want  string // what is handed on, "" for nothing
	}{
		{apiwatch.Added, gpuPod("a", "n", 2), "ADDED ns/a 2"},
		{apiwatch.Added, gpuPod("cpu", "n", 0), ""},
		{apiwatch.Modified, gpuPod("cpu", "n", 0), ""},
		{apiwatch.Deleted, gpuPod("cpu", "n", 0), ""},
		{apiwatch.Added, annotated, ""},
		{apiwatch.Modified, annotated, ""},
		{apiwatch.Deleted, annotated, ""},
		{apiwatch.Bookmark, bookmark("8", false), ""},
		{apiwatch.Bookmark, bookmark("9", true), "BOOKMARK 9 end"},
		{apiwatch.Modified, gpuPod("a", "n", 3), "MODIFIED ns/a 3"},
		{apiwatch.Modified, gpuPod("a", "n", 0), "DELETED ns/a 0"},
		{apiwatch.Modified, gpuPod("a", "n", 0), ""},
		{apiwatch.Modified, gpuPod("a", "n", 1), "MODIFIED ns/a 1"},
		{apiwatch.Modified, finished, "DELETED ns/a 0"},
		{apiwatch.Deleted, finished, ""},
		{apiwatch.Added, gpuPod("b", "n", 1), "ADDED ns/b 1"},
		{apiwatch.Deleted, gpuPod("b", "n", 1), "DELETED ns/b 0"},
		{apiwatch.Deleted, gpuPod("b", "n", 1), ""},
	}
	for _, asJSON := range []bool{false, true} {
		w := &wire{json: asJSON}
		var want, got []string
		for _, step := range steps {
			w.send(t, step.event, step.pod)
			if step.want != "" {
				want = append(want, step.want)
			}
		}
		for _, e := range read(t, podKind(gpus), iotest.OneByteReader(&w.Buffer)) {
			r := e.Object.(*podRecord)
			text := fmt.Sprintf("%s %s %d", e.Type, r.Key, r.Requests.Of(count.NVIDIA))
			if e.Type == apiwatch.Bookmark {
				text = fmt.Sprintf("%s %s", e.Type, r.resourceVersion)
				if r.GetObjectMeta().GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
					text += " end"
				}
			} else if r.resourceVersion != "7" {
				t.Errorf("%s has version %q", text, r.resourceVersion)
			}
			got = append(got, text)
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("json %v:\n%s\nwant\n%s", asJSON, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestNodesBookmark: the end of the initial events is seen among nodes too.
func TestNodesBookmark(t *testing.T) {
	w := &wire{}
	w.send(t, apiwatch.Bookmark, &corev1.Node{ObjectMeta: bookmark("9", true).ObjectMeta})
	got := read(t, nodeKind(gpus), &w.Buffer)
	meta := got[0].Object.(*nodeRecord).GetObjectMeta()
	if meta.GetResourceVersion() != "9" || meta.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("got %+v", meta)
	}
}

// TestLargeEvents: an event may be larger than the buffer, and the next one is read
// as if it had not been.
func TestLargeEvents(t *testing.T) {
	large := gpuPod("large", "n", 1)
	large.Spec.Containers[0].Args = []string{strings.Repeat("x", 3*bufferSize)}
	w := &wire{}
	for range 3 {
		w.send(t, apiwatch.Added, gpuPod("a", "n", 1))
		w.send(t, apiwatch.Added, large)
	}
	// Frames whose length is about that of the buffer.
	for n := bufferSize - 200; n < bufferSize+50; n++ {
		p := gpuPod("edge", "n", 1)
		p.Spec.Containers[0].Args = []string{strings.Repeat("x", n)}
		w.send(t, apiwatch.Added, p)
	}
	if got := read(t, podKind(gpus), &w.Buffer); len(got) != 256 {
		t.Errorf("%d events, want 256", len(got))
	}
}

// TestErrorsOfAStream: what is wrong with a stream is said, and an end in the middle
// of an event is no end.
func TestErrorsOfAStream(t *testing.T) {
	good := &wire{}
	good.send(t, apiwatch.Added, gpuPod("a", "n", 1))
	for name, tc := range map[string]struct {
		bytes []byte
		want  string
	}{
		"cut in the length": {good.Bytes()[:2], io.ErrUnexpectedEOF.Error()},
		"cut in the event":  {good.Bytes()[:30], io.ErrUnexpectedEOF.Error()},
		"a huge event":      {[]byte{0x70, 0, 0, 0, 1}, "an event of 1879048192 bytes"},
		"not protobuf":      {[]byte{0, 0, 0, 2, 0xff, 0xff}, "malformed protobuf"},
	} {
		s := newStream(podKind(gpus), io.NopCloser(bytes.NewReader(tc.bytes)), newKnown(), &position{})
		if _, _, err := s.Decode(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	w := &wire{}
	w.send(t, apiwatch.Added, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	s := newStream(podKind(gpus), io.NopCloser(w), newKnown(), &position{})
	if _, _, err := s.Decode(); err == nil || !strings.Contains(err.Error(), "sent a Node among pods") {
		t.Errorf("a node among pods: %v", err)
	}
	for _, asJSON := range []bool{false, true} {
		w := &wire{json: asJSON}
		w.send(t, apiwatch.Error, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410})
		got := read(t, podKind(gpus), w)
		if status, ok := got[0].Object.(*metav1.Status); !ok || status.Reason != metav1.StatusReasonExpired {
			t.Errorf("json %v: an error event became %+v", asJSON, got[0].Object)
		}
	}
}

// TestIrrelevantEventsLeaveNothing: no allocation, and so nothing to keep.
func TestIrrelevantEventsLeaveNothing(t *testing.T) {
	pod := newMaker(1).pod(1)
	pod.Spec, pod.Status = corev1.PodSpec{NodeName: "n", Containers: make([]corev1.Container, 3)}, corev1.PodStatus{}
	w := &wire{}
	const events = 1000
	for range events {
		w.send(t, apiwatch.Modified, pod)
	}
	sent := w.Bytes()
	var in bytes.Reader
	s := newStream(podKind(gpus), io.NopCloser(&in), newKnown(), &position{})
	allocations := testing.AllocsPerRun(5, func() {
		in.Reset(sent)
		s.in.Reset(&in)
		if _, _, err := s.Decode(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	})
	if allocations > events/100 {
		t.Errorf("%v allocations for %d events", allocations, events)
	}
	if n := len(s.known.hashes); n != 0 {
		t.Errorf("%d of them are remembered", n)
	}
}

// BenchmarkStream reads pods as a cluster has them, of 5 KB each.
func BenchmarkStream(b *testing.B) {
	for name, gpus := range map[string]int64{"irrelevant": 0, "gpu": 1} {
		b.Run(name, func(b *testing.B) {
			pod := gpuPod("a-pod-of-a-deployment-5c9f7d8b6-x2x4q", "node-1", gpus)
			pod.Annotations = map[string]string{"a/b": strings.Repeat("path/to/something ", 100), "c": strings.Repeat("text ", 500)}
			w := &wire{}
			w.send(&testing.T{}, apiwatch.Modified, pod)
			sent := bytes.Repeat(w.Bytes(), 100)
			b.SetBytes(int64(len(sent)) / 100)
			b.ReportAllocs()
			var in bytes.Reader
			s := newStream(podKind(countedNames(b)), io.NopCloser(&in), newKnown(), &position{})
			for i := 0; b.Loop(); i++ {
				if in.Len() == 0 && s.in.Buffered() == s.pending {
					in.Reset(sent)
				}
				if gpus == 0 {
					_, object, err := s.next()
					if err == nil {
						_, _, err = s.read(apiwatch.Modified, object)
					}
					if err != nil {
						b.Fatal(err)
					}
					continue
				}
				if _, _, err := s.Decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
