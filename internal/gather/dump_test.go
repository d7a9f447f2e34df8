package gather

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// heard notes what it is told, an object as "Pod {…}".
type heard struct{ objects []string }

func (h *heard) note(kind string, obj any) {
	text, _ := json.Marshal(obj)
	h.objects = append(h.objects, kind+" "+string(text))
}

func (h *heard) Pod(pod *corev1.Pod) {
	pod.TypeMeta = metav1.TypeMeta{}
	h.note("Pod", pod)
}

func (h *heard) Node(node *corev1.Node) {
	node.TypeMeta = metav1.TypeMeta{}
	h.note("Node", node)
}

func (h *heard) DeviceClass(class *resourcev1.DeviceClass) {
	class.TypeMeta = metav1.TypeMeta{}
	h.note("DeviceClass", class)
}

func (h *heard) ResourceSlice(slice *resourcev1.ResourceSlice) {
	slice.TypeMeta = metav1.TypeMeta{}
	h.note("ResourceSlice", slice)
}

func (h *heard) ResourceClaim(claim *resourcev1.ResourceClaim) {
	claim.TypeMeta = metav1.TypeMeta{}
	h.note("ResourceClaim", claim)
}

// names are the kinds and names of what was told, in order.
func (h *heard) names() string {
	var names []string
	for _, text := range h.objects {
		kind, raw, _ := strings.Cut(text, " ")
		var obj metav1.PartialObjectMetadata
		_ = json.Unmarshal([]byte(raw), &obj)
		names = append(names, kind+" "+nameOf(&obj))
	}
	return strings.Join(names, ", ")
}

// same reports whether both heard of the same objects, each as often.
func (h *heard) same(other *heard) bool {
	a, b := slices.Sorted(slices.Values(h.objects)), slices.Sorted(slices.Values(other.objects))
	return slices.Equal(a, b)
}

type dumped = map[string]any

// asDumped is an object as kubectl has it before it is written.
func asDumped(apiVersion, kind string, obj any) dumped {
	raw, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	var d dumped
	_ = json.Unmarshal(raw, &d)
	d["apiVersion"], d["kind"] = apiVersion, kind
	return d
}

// awkward texts are in every object: nothing in them may be taken for layout.
var awkward = []string{
	"", "plain", "- a\n- b\n", "---\napiVersion: v1\n", "\n\n  # no comment\nitems:\n- x\n", `{"items":[{"kind":"Pod"}]}`,
	"tab\t", "  leading\n less\n", "é\u2028\u00a0", "yes", "0x1f", "1e3", "'\"\\", strings.Repeat("long words in a line that is folded ", 20),
}

func dumpedObject(r *rand.Rand, i int) dumped {
	meta := metav1.ObjectMeta{Name: fmt.Sprintf("o%d", i), Annotations: map[string]string{"a": awkward[r.IntN(len(awkward))], "b": awkward[r.IntN(len(awkward))]}}
	switch r.IntN(5) {
	case 0:
		meta.Namespace = "default"
		return asDumped("v1", "Pod", &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{
			Name: "c", Args: awkward, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}},
		}}}, Status: corev1.PodStatus{Phase: []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded}[r.IntN(2)]}})
	case 1:
		return asDumped("v1", "Node", &corev1.Node{ObjectMeta: meta, Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"amd.com/gpu": resource.MustParse("4")}}})
	case 2:
		return asDumped("resource.k8s.io/v1", "DeviceClass", &resourcev1.DeviceClass{ObjectMeta: meta, Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "device.driver == \"gpu.example.com\"\n"}}},
		}})
	case 3:
		return asDumped("resource.k8s.io/v1", "ResourceSlice", &resourcev1.ResourceSlice{ObjectMeta: meta, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: ptr.To("n"), Devices: []resourcev1.Device{{Name: "d"}},
		}})
	}
	meta.Namespace = "default"
	return asDumped("resource.k8s.io/v1", "ResourceClaim", &resourcev1.ResourceClaim{ObjectMeta: meta})
}

func dumpedObjects(r *rand.Rand, n int) (objects []dumped) {
	for i := range n {
		objects = append(objects, dumpedObject(r, i))
	}
	return objects
}

// kubectlList is how kubectl puts objects together. The keys of a map are written in order,
// which has the items before the kind.
func kubectlList(objects []dumped) dumped {
	return dumped{"apiVersion": "v1", "kind": "List", "items": objects, "metadata": dumped{"resourceVersion": ""}}
}

func toJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

func toIndentedJSON(v any) []byte {
	text, err := json.MarshalIndent(v, "", "    ")
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

func toYAML(v any) []byte {
	text, err := yaml.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// forms are ways to write objects down.
var forms = map[string]func([]dumped) []byte{
	"List in JSON":          func(o []dumped) []byte { return toJSON(kubectlList(o)) },
	"List in indented JSON": func(o []dumped) []byte { return toIndentedJSON(kubectlList(o)) },
	"List in YAML":          func(o []dumped) []byte { return toYAML(kubectlList(o)) },
	"List in YAML, the kind first": func(o []dumped) []byte {
		return append([]byte("kind: List\napiVersion: v1\nitems: # all\n"), toYAML(o)...)
	},
	"List in YAML, indented": func(o []dumped) []byte {
		return append([]byte("kind: List\napiVersion: v1\nitems:\n"), indent(toYAML(o))...)
	},
	"List in YAML with flow": func(o []dumped) []byte { return []byte("kind: List\nitems: " + string(toJSON(o)) + "apiVersion: v1\n") },
	"List in flow": func(o []dumped) []byte {
		return []byte("{kind: List, apiVersion: v1, items: " + string(toJSON(o)) + "}\n")
	},
	"items below their key": func(o []dumped) []byte {
		return []byte("kind: List\nitems:\n  " + string(toJSON(o)) + "apiVersion: v1\n")
	},
	"sequence in YAML":          func(o []dumped) []byte { return append([]byte("# all\n"), toYAML(o)...) },
	"array in JSON":             func(o []dumped) []byte { return toJSON(o) },
	"lines of JSON":             func(o []dumped) []byte { return joined(o, toJSON, "") },
	"documents in JSON":         func(o []dumped) []byte { return joined(o, toIndentedJSON, "") },
	"documents in YAML":         func(o []dumped) []byte { return joined(o, toYAML, "---\n") },
	"JSON as documents in YAML": func(o []dumped) []byte { return joined(o, toIndentedJSON, "--- # next\n") },
	"items as flow":             func(o []dumped) []byte { return joined(o, toJSON, "- ") },
	"List in a List":            func(o []dumped) []byte { return toIndentedJSON(kubectlList([]dumped{kubectlList(o)})) },
	"List in a List, YAML":      func(o []dumped) []byte { return toYAML(kubectlList([]dumped{kubectlList(o)})) },
}

func indent(text []byte) []byte {
	lines := strings.SplitAfter(string(text), "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) != "" {
			lines[i] = "    " + line
		}
	}
	return []byte(strings.Join(lines, ""))
}

func joined(objects []dumped, write func(any) []byte, before string) (text []byte) {
	for _, o := range objects {
		text = append(append(text, before...), write(o)...)
	}
	return text
}

func gzipped(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(text)
	_ = w.Close()
	return b.Bytes()
}

func inUTF16(text []byte, order binary.AppendByteOrder, mark bool) (out []byte) {
	if mark {
		out = order.AppendUint16(out, 0xfeff)
	}
	for _, unit := range utf16.Encode([]rune(string(text))) {
		out = order.AppendUint16(out, unit)
	}
	return out
}

// wraps are ways to pack a dump that change nothing in it.
var wraps = map[string]func([]byte) []byte{
	"as it is":                func(text []byte) []byte { return text },
	"gzip":                    gzipped,
	"gzip, twice":             func(text []byte) []byte { return gzipped(gzipped(text)) },
	"gzip in parts":           func(text []byte) []byte { return append(gzipped(text[:len(text)/2]), gzipped(text[len(text)/2:])...) },
	"byte order mark":         func(text []byte) []byte { return append([]byte("\ufeff"), text...) },
	"UTF-16":                  func(text []byte) []byte { return inUTF16(text, binary.LittleEndian, true) },
	"UTF-16, big end":         func(text []byte) []byte { return inUTF16(text, binary.BigEndian, true) },
	"UTF-16 without a mark":   func(text []byte) []byte { return inUTF16(text, binary.LittleEndian, false) },
	"UTF-16 without, big end": func(text []byte) []byte { return inUTF16(text, binary.BigEndian, false) },
	"UTF-16 in gzip":          func(text []byte) []byte { return gzipped(inUTF16(text, binary.LittleEndian, true)) },
	"lines end as on Windows": func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")) },
	"comments and empty lines": func(text []byte) []byte {
		return append([]byte("\n  # of a cluster\n\n%YAML 1.1\n---\n"), append(text, "\n...\n# end"...)...)
	},
	"without an end of line": withoutEnd,
	"mark behind other text": func(text []byte) []byte { return append([]byte("\n{\"kind\":\"List\",\"items\":[]}\n\ufeff"), text...) },
}

// withoutEnd takes the last end of line away, unless it may be a part of a text in YAML.
func withoutEnd(text []byte) []byte {
	if trimmed := bytes.TrimRight(text, "\n"); bytes.HasSuffix(trimmed, []byte("}")) {
		return trimmed
	}
	return text
}

// told is what reading a dump tells; it has to be without errors.
func told(t *testing.T, text []byte) (*heard, Report) {
	t.Helper()
	var h heard
	r, err := File(t.Context(), "dump", bytes.NewReader(text), &h)
	if err != nil || r.BrokenTotal > 0 {
		t.Fatalf("%v, broken: %v", err, r.Broken)
	}
	if r.Told.Total() != len(h.objects) {
		t.Fatalf("%d objects are said to be told, and %d were", r.Told.Total(), len(h.objects))
	}
	return &h, r
}

func objectsOf(objects []dumped) *heard {
	var h heard
	for _, o := range objects {
		raw := toJSON(o)
		switch o["kind"] {
		case "Pod":
			h.Pod(parsed[corev1.Pod](raw))
		case "Node":
			h.Node(parsed[corev1.Node](raw))
		case "DeviceClass":
			h.DeviceClass(parsed[resourcev1.DeviceClass](raw))
		case "ResourceSlice":
			h.ResourceSlice(parsed[resourcev1.ResourceSlice](raw))
		case "ResourceClaim":
			h.ResourceClaim(parsed[resourcev1.ResourceClaim](raw))
		}
	}
	return &h
}

func parsed[T any](raw []byte) *T {
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		panic(err)
	}
	return out
}

// seeded says with which seed a failing test can be repeated.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}
