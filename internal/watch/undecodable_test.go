package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// ruin makes of an encoded pod or node of ruinedPod or ruinedNode one that the API's
// decoder refuses: a quantity that is none.
func ruin(object []byte) []byte {
	return []byte(strings.ReplaceAll(string(object), "987654321", "987654.x1"))
}

func ruinedPod(name, version string) *corev1.Pod {
	p := gpuPod(name, "n", 987654321)
	p.ResourceVersion = version
	return p
}

func ruinedNode(name, version string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	n.Status.Capacity = gpuPod("", "", 987654321).Spec.Containers[0].Resources.Requests
	return n
}

// logged collects what is logged about objects that are left out.
func logged(t *testing.T) (klog.Logger, func() []string) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	buffer := logger.GetSink().(ktesting.Underlier).GetBuffer()
	return logger, func() (lines []string) {
		for _, entry := range buffer.Data() {
			lines = append(lines, fmt.Sprint(entry.Message, ": ", entry.ParameterKVList))
		}
		return lines
	}
}

// TestOneBadObjectHidesNoOther: an object that cannot be decoded is left out, said to
// be once for each of its versions, and counted; all others come through, before it and
// behind it; and what was known of it before stays known.
func TestOneBadObjectHidesNoOther(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		t.Run(fmt.Sprintf("json %v", asJSON), func(t *testing.T) {
			w := &wire{json: asJSON}
			at := func(pod *corev1.Pod, version string) *corev1.Pod { pod.ResourceVersion = version; return pod }
			w.send(t, apiwatch.Added, at(gpuPod("a", "n", 1), "11"))
			w.send(t, apiwatch.Added, at(gpuPod("bad", "n", 2), "12"))
			for range 2 {
				w.send(t, apiwatch.Modified, ruinedPod("bad", "13"), ruin)
			}
			w.send(t, apiwatch.Modified, ruinedPod("bad", "14"), ruin)
			w.send(t, apiwatch.Added, ruinedPod("worse", "15"), ruin)
			w.send(t, apiwatch.Added, at(gpuPod("b", "n", 1), "16"))
			w.send(t, apiwatch.Added, ruinedPod("worse", "17"), ruin)
			var p position
			logger, lines := logged(t)
			s := newStream(podKind(gpus), io.NopCloser(w), newKnown(), &p)
			s.logger = logger
			var got []string
			for {
				event, obj, err := s.Decode()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprint(event, " ", obj.(*podRecord).Key))
			}
			if want := []string{"ADDED ns/a", "ADDED ns/bad", "ADDED ns/b"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			said := strings.Join(lines(), "\n")
			for _, want := range []string{"object ns/bad resourceVersion 13]", "object ns/bad resourceVersion 14]",
				"object ns/worse resourceVersion 15]", "object ns/worse resourceVersion 17]"} {
				if strings.Count(said, want) != 1 {
					t.Errorf("%d lines with %s, want one of\n%s", strings.Count(said, want), want, said)
				}
			}
			var stats SourceStats
			s.stats.read(&stats)
			if stats.Undecodable != 4 || stats.Missing != 2 || stats.HandedOn != 3 {
				t.Errorf("%d versions undecodable, %d missing, %d handed on; want 4, 2, 3", stats.Undecodable, stats.Missing, stats.HandedOn)
			}
			// A watch that is taken up again does not meet them again.
			if got := p.of("16"); got != "17" {
				t.Errorf("the position is %s, want 17", got)
			}
		})
	}
}

// TestWhatCanBeReadAgainIsNotMissing, nor what is gone, nor what no longer mentions a
// GPU. A deletion needs only the name.
func TestWhatCanBeReadAgainIsNotMissing(t *testing.T) {
	for _, tc := range []struct {
		name string
		send func(*wire)
		want string // the last that is handed on
	}{
		{"read again", func(w *wire) { w.send(t, apiwatch.Modified, gpuPod("bad", "n", 3)) }, "MODIFIED ns/bad"},
		{"without a GPU", func(w *wire) { w.send(t, apiwatch.Modified, gpuPod("bad", "n", 0)) }, "DELETED ns/bad"},
		{"deleted", func(w *wire) { w.send(t, apiwatch.Deleted, gpuPod("bad", "n", 1)) }, "DELETED ns/bad"},
		{"deleted, and cannot be decoded", func(w *wire) { w.send(t, apiwatch.Deleted, ruinedPod("bad", "9"), ruin) }, "DELETED ns/bad"},
	} {
		for _, asJSON := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, json %v", tc.name, asJSON), func(t *testing.T) {
				w := &wire{json: asJSON}
				w.send(t, apiwatch.Added, gpuPod("bad", "n", 2))
				w.send(t, apiwatch.Modified, ruinedPod("bad", "8"), ruin)
				tc.send(w)
				s := newStream(podKind(gpus), io.NopCloser(w), newKnown(), &position{})
				s.logger = klog.Logger{}
				var last string
				for {
					event, obj, err := s.Decode()
					if err != nil {
						break
					}
					last = fmt.Sprint(event, " ", obj.(*podRecord).Key)
				}
				if last != tc.want {
					t.Errorf("the last is %q, want %q", last, tc.want)
				}
				if n := s.stats.undecodable.missing.Load(); n != 0 {
					t.Errorf("%d are missing", n)
				}
			})
		}
	}
}

// TestADeletionWithoutANameEndsTheStream: nothing else would ever tell what is gone.
// Any other event of such an object is left out and named by its bytes.
func TestADeletionWithoutANameEndsTheStream(t *testing.T) {
	noName := func([]byte) []byte {
		kind := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "Pod")
		envelope := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), kind)
		envelope = protowire.AppendBytes(protowire.AppendTag(envelope, 2, protowire.BytesType), []byte{0x0a, 0x7f, 'x'})
		return append(slices.Clone(magic), envelope...)
	}
	w := &wire{}
	w.send(t, apiwatch.Modified, gpuPod("a", "n", 1), noName)
	w.send(t, apiwatch.Added, gpuPod("b", "n", 1))
	w.send(t, apiwatch.Deleted, gpuPod("a", "n", 1), noName)
	logger, lines := logged(t)
	s := newStream(podKind(gpus), io.NopCloser(w), newKnown(), &position{})
	s.logger = logger
	if _, obj, err := s.Decode(); err != nil || obj.(*podRecord).Key != "ns/b" {
		t.Fatalf("got %v, %v; want ns/b", obj, err)
	}
	if said := strings.Join(lines(), "\n"); !strings.Contains(said, "without a name that can be read, of") {
		t.Errorf("logged\n%s", said)
	}
	if _, _, err := s.Decode(); err == nil || !strings.Contains(err.Error(), "of what was deleted") {
		t.Errorf("the deletion met %v", err)
	}
}

// TestRandomBytesEndNoStream: whatever the bytes of an object are changed to, the next
// one comes, unless what is around it is broken too.
func TestRandomBytesEndNoStream(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := newMaker(seed)
	left := 0
	for i := range randomObjects {
		w := &wire{}
		w.send(t, apiwatch.Added, m.pod(i), func(object []byte) []byte {
			_, message, err := readObject(object)
			if err != nil {
				t.Fatal(err)
			}
			message[m.IntN(len(message))] ^= byte(1 + m.IntN(255))
			return object
		})
		w.send(t, apiwatch.Added, gpuPod("next", "n", 1))
		s := newStream(podKind(gpus), io.NopCloser(w), newKnown(), &position{})
		s.logger = klog.Logger{}
		for {
			_, obj, err := s.Decode()
			if err != nil {
				t.Fatalf("object %d: %v", i, err)
			}
			if obj.(*podRecord).Key == "ns/next" {
				break
			}
		}
		left += int(s.stats.undecodable.total.Load())
	}
	if left == 0 || left == randomObjects {
		t.Errorf("%d of %d objects could not be decoded", left, randomObjects)
	}
}

// TestFramesThatAreBrokenEndTheStream: leaving out whatever comes would fill no cache
// and call it complete.
func TestFramesThatAreBrokenEndTheStream(t *testing.T) {
	for name, send := range map[string]func(*wire){
		"broken JSON":    func(w *wire) { w.WriteString(`{"type":"ADDED","object":{"kind":"Pod",,}}`) },
		"an unknown one": func(w *wire) { w.WriteString(`{"type":"ADDED","object":{"kind":"Quark","apiVersion":"v1"}}`) },
		"no envelope": func(w *wire) {
			raw, _ := json.Marshal("x")
			w.sendRaw(apiwatch.Added, raw)
		},
	} {
		w := &wire{}
		send(w)
		s := newStream(podKind(gpus), io.NopCloser(w), newKnown(), &position{})
		if _, _, err := s.Decode(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRememberingIsBounded, however many objects cannot be decoded.
func TestRememberingIsBounded(t *testing.T) {
	var u undecodables
	for i := range 3 * mostUndecodable {
		u.met(klog.Logger{}, "pods", identity{name: fmt.Appendf(nil, "p%d", i), resourceVersion: []byte("1")}, nil, errMalformed)
	}
	if len(u.now) > mostUndecodable || len(u.logged) > mostUndecodable || u.total.Load() != 3*mostUndecodable {
		t.Errorf("%d and %d are remembered, %d counted", len(u.now), len(u.logged), u.total.Load())
	}
	u.anew()
	if u.missing.Load() != 0 {
		t.Errorf("%d are missing from what is about to be read", u.missing.Load())
	}
}

// TestWhatIsReadAnewIsNotMissing: an object that is gone by then would be called so for
// ever. A list that client-go makes to compare is no new beginning.
func TestWhatIsReadAnewIsNotMissing(t *testing.T) {
	c := newClient(podKind(gpus), nil, "", nil)
	c.stats.undecodable.met(klog.Logger{}, "pods", identity{name: []byte("a")}, nil, errMalformed)
	c.remember(false)
	if n := c.stats.undecodable.missing.Load(); n != 1 {
		t.Errorf("%d missing, want 1", n)
	}
	c.remember(true)
	if n := c.stats.undecodable.missing.Load(); n != 0 {
		t.Errorf("%d missing once all is read anew", n)
	}
}
