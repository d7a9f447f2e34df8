package gather

import (
	"io"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// endless is a list of one and the same pod, in about so many bytes.
func endless(form string, size int) io.Reader {
	pod := dumped{"apiVersion": "v1", "kind": "Pod", "metadata": dumped{"name": "a"}, "spec": dumped{"containers": []dumped{{"name": "c", "args": awkward}}}}
	switch form {
	case "JSON":
		item := append(toIndentedJSON(pod), ',')
		return io.MultiReader(text(`{"apiVersion":"v1","items":[`), &repeated{text: item, left: size / len(item) * len(item)}, text(string(toJSON(pod))+`],"kind":"List"}`))
	case "lines":
		item := toJSON(pod)
		return &repeated{text: item, left: size / len(item) * len(item)}
	case "YAML":
		item := toYAML([]dumped{pod})
		return io.MultiReader(text("apiVersion: v1\nitems:\n"), &repeated{text: item, left: size / len(item) * len(item)}, text("kind: List\n"))
	}
	panic(form)
}

// watermark notes, while it is told, the most that is live.
type watermark struct {
	told, every int
	most        uint64
}

func (w *watermark) Pod(*corev1.Pod) {
	if w.told++; w.told%w.every == 0 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		w.most = max(w.most, m.HeapAlloc)
	}
}
func (w *watermark) Node(*corev1.Node)                       {}
func (w *watermark) DeviceClass(*resourcev1.DeviceClass)     {}
func (w *watermark) ResourceSlice(*resourcev1.ResourceSlice) {}
func (w *watermark) ResourceClaim(*resourcev1.ResourceClaim) {}

// TestMemoryDoesNotFollowTheDump: ten times the dump is no more in memory.
func TestMemoryDoesNotFollowTheDump(t *testing.T) {
	const mib = 1 << 20
	for form, size := range map[string]int{"JSON": 60 * mib, "lines": 20 * mib, "YAML": 10 * mib} {
		t.Run(form, func(t *testing.T) {
			var most [2]uint64
			for i, size := range []int{size / 10, size} {
				w := watermark{every: size / (200 << 10)} // some twenty times, for a pod is of about 2.5 KiB
				if _, err := File(t.Context(), "dump", endless(form, size), &w); err != nil {
					t.Fatal(err)
				}
				most[i] = w.most
				if w.most == 0 {
					t.Fatalf("%d pods, and memory was never looked at", w.told)
				}
			}
			t.Logf("%d MiB: %d KiB, %d MiB: %d KiB", size/10/mib, most[0]>>10, size/mib, most[1]>>10)
			if most[1] > most[0]+2*mib {
				t.Errorf("a tenth takes %d KiB of memory, all %d KiB", most[0]>>10, most[1]>>10)
			}
		})
	}
}
