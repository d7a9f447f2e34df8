package gather

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestEveryForm: however objects are written and packed, the same are told.
func TestEveryForm(t *testing.T) {
	objects := dumpedObjects(seeded(t), 12)
	want := objectsOf(objects)
	for form, write := range forms {
		for wrap, pack := range wraps {
			t.Run(form+", "+wrap, func(t *testing.T) {
				if got, _ := told(t, pack(write(objects))); !got.same(want) {
					t.Errorf("told was\n%q\nwant\n%q", got.objects, want.objects)
				}
			})
		}
	}
}

// TestAnySplit: objects in any number of documents, each in another form, read in
// pieces of any size.
func TestAnySplit(t *testing.T) {
	r := seeded(t)
	for range 60 {
		checkSplit(t, r)
	}
}

func checkSplit(t *testing.T, r *rand.Rand) {
	t.Helper()
	names := slices.Sorted(maps.Keys(forms))
	objects := dumpedObjects(r, 1+r.IntN(20))
	var text []byte
	var used []string
	for rest := objects; len(rest) > 0; {
		n := 1 + r.IntN(len(rest))
		form := names[r.IntN(len(names))]
		used = append(used, form)
		text = append(append(text, "---\n"...), forms[form](rest[:n])...)
		rest = rest[n:]
	}
	packs := slices.Sorted(maps.Keys(wraps))
	pack := packs[r.IntN(len(packs))]
	var h heard
	reader := io.Reader(bytes.NewReader(wraps[pack](text)))
	if r.IntN(2) == 0 {
		reader = iotest.OneByteReader(reader)
	}
	report, err := File(t.Context(), "dump", reader, &h)
	if err != nil || report.BrokenTotal > 0 || !h.same(objectsOf(objects)) {
		t.Fatalf("forms %q, %s: %v, broken %v; told was\n%q\nof\n%s", used, pack, err, report.Broken, h.objects, text)
	}
}

// TestListsOfOneKind: items need not say what they are, wherever the list says it.
func TestListsOfOneKind(t *testing.T) {
	const want = "Pod default/a, Pod default/b"
	for name, text := range map[string]string{
		"as the API server sends it": `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"namespace":"default","name":"a"}},{"metadata":{"namespace":"default","name":"b"}}]}`,
		"the kind behind":            `{"apiVersion":"v1","items":[{"metadata":{"namespace":"default","name":"a"}},{"metadata":{"namespace":"default","name":"b"}}],"kind":"PodList"}`,
		"YAML":                       "kind: PodList\napiVersion: v1\nitems:\n- metadata:\n    namespace: default\n    name: a\n- metadata: {namespace: default, name: b}\n",
		"YAML, the kind behind":      "items:\n-\n  metadata:\n    namespace: default\n    name: a\n-   metadata: {namespace: default, name: b}\n\n# what it is\nkind: PodList\napiVersion: v1\n",
		"in a List":                  `{"kind":"List","apiVersion":"v1","items":[{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"namespace":"default","name":"a"}},{"metadata":{"namespace":"default","name":"b"}}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := told(t, []byte(text)); got.names() != want {
				t.Errorf("told was %s, want %s", got.names(), want)
			}
		})
	}
}

// TestWhatADumpHas: what can be known of nodes and DRA, and what is left out.
func TestWhatADumpHas(t *testing.T) {
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`
	for name, tc := range map[string]struct {
		text    string
		nodes   bool
		dra     count.DRAState
		ignored map[string]int
	}{
		"a pod":             {pod, false, count.DRAAbsent, nil},
		"no node":           {pod + `{"kind":"NodeList","apiVersion":"v1","items":[]}`, true, count.DRAAbsent, nil},
		"no slice":          {pod + "\n---\nkind: ResourceSliceList\napiVersion: resource.k8s.io/v1\nitems: []\n", false, count.DRASynced, nil},
		"no claim, in YAML": {"kind: ResourceClaimList\napiVersion: resource.k8s.io/v1\nitems:\nmetadata: {}\n", false, count.DRASynced, nil},
		"no pod":            {`{"kind":"PodList","apiVersion":"v1","items":null}`, false, count.DRAAbsent, nil},
		"others": {
			pod + `{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"a"}}{"kind":"List","items":[{"kind":"Job","apiVersion":"batch/v1"},{"kind":"Secret","apiVersion":"v1"}]}`,
			false, count.DRAAbsent, map[string]int{"Job.v1.batch": 2, "Secret": 1},
		},
		"others of a known kind": {pod + `{"kind":"Node","apiVersion":"v2"}{"kind":"Pod","apiVersion":"example.com/v1"}{"kind":"Pod"}`, false, count.DRAAbsent,
			map[string]int{"Node": 1, "Pod.v1.example.com": 1, "Pod": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := told(t, []byte(tc.text))
			if r.NodesKnown != tc.nodes || r.DRA != tc.dra || !maps.Equal(r.Ignored, tc.ignored) {
				t.Errorf("nodes known %v, DRA %s, ignored %v; want %v, %s, %v", r.NodesKnown, r.DRA, r.Ignored, tc.nodes, tc.dra, tc.ignored)
			}
			if (r.DRAReason == "") != (r.DRA == count.DRASynced) {
				t.Errorf("DRA is %s because of %q", r.DRA, r.DRAReason)
			}
		})
	}
}

// TestOlderVersions: what an older cluster has of resource.k8s.io is told as v1.
func TestOlderVersions(t *testing.T) {
	want, _ := told(t, []byte(`
{"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1","metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1},
	"devices":[{"name":"gpu-0","attributes":{"productName":{"string":"A100"}},"capacity":{"memory":{"value":"40Gi"}}}]}}
{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","metadata":{"namespace":"default","name":"c"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu"}}]}},
	"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"gpu-0"}]}}}}
{"kind":"DeviceClass","apiVersion":"resource.k8s.io/v1","metadata":{"name":"gpu"},"spec":{"selectors":[{"cel":{"expression":"true"}}]}}`))
	for version, text := range map[string]string{
		"v1beta2": `
{"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1beta2","metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1},
	"devices":[{"name":"gpu-0","attributes":{"productName":{"string":"A100"}},"capacity":{"memory":{"value":"40Gi"}}}]}}
{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1beta2","metadata":{"namespace":"default","name":"c"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu"}}]}},
	"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"gpu-0"}]}}}}
{"kind":"DeviceClass","apiVersion":"resource.k8s.io/v1beta2","metadata":{"name":"gpu"},"spec":{"selectors":[{"cel":{"expression":"true"}}]}}`,
		"v1beta1": `
{"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1beta1","metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1},
	"devices":[{"name":"gpu-0","basic":{"attributes":{"productName":{"string":"A100"}},"capacity":{"memory":{"value":"40Gi"}}}}]}}
{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1beta1","metadata":{"namespace":"default","name":"c"},"spec":{"devices":{"requests":[{"name":"r","deviceClassName":"gpu"}]}},
	"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"gpu-0"}]}}}}
{"kind":"DeviceClass","apiVersion":"resource.k8s.io/v1beta1","metadata":{"name":"gpu"},"spec":{"selectors":[{"cel":{"expression":"true"}}]}}`,
	} {
		got, r := told(t, []byte(text))
		if !got.same(want) || r.DRA != count.DRASynced {
			t.Errorf("%s: told was\n%q\nwant\n%q (DRA %s)", version, got.objects, want.objects, r.DRA)
		}
	}
}

// TestRealDumps: objects as kubectl edit shows them, below comments.
func TestRealDumps(t *testing.T) {
	dumps := filepath.Join("..", "..", "..", "shared", "data", "dumps")
	files, _ := filepath.Glob(filepath.Join(dumps, "*.yaml"))
	if len(files) == 0 {
		t.Skipf("%s does not exist", dumps)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(filepath.Base(name), "-")
		if got, _ := told(t, text); len(got.objects) != 1 || !strings.EqualFold(kind, strings.Fields(got.objects[0])[0]) {
			t.Errorf("%s: told was %q", name, got.names())
		}
	}
}

// TestEndsWithContext: a dump that comes through a pipe may never end.
func TestEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	endless := iotest.OneByteReader(&repeated{text: []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`), read: func(n int) {
		if n > 1000 {
			cancel(why)
		}
	}})
	_, err := File(ctx, "-", endless, &heard{})
	if !errors.Is(err, why) || !strings.HasPrefix(err.Error(), "-: document ") {
		t.Errorf("it ended with %v", err)
	}
}

// repeated is a text again and again.
type repeated struct {
	text []byte
	at   int
	left int         // how much of it there is, 0 for no end
	read func(n int) // may be nil
}

func (r *repeated) Read(p []byte) (n int, err error) {
	if r.left > 0 {
		p = p[:min(len(p), r.left-r.at)]
		if len(p) == 0 {
			return 0, io.EOF
		}
	}
	for n < len(p) {
		c := copy(p[n:], r.text[r.at%len(r.text):])
		n, r.at = n+c, r.at+c
	}
	if r.read != nil {
		r.read(r.at)
	}
	return n, nil
}

func text(s string) io.Reader { return strings.NewReader(s) }
