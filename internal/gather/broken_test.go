package gather

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

const (
	podA = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"a"}}`
	podB = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"b"}}`
)

// joinLines puts lines together.
func joinLines(text ...string) string { return strings.Join(text, "\n") + "\n" }

// TestBroken: what is wrong is named with its place, and hides nothing that can
// still be found.
func TestBroken(t *testing.T) {
	const notGuessed = ": this is no JSON, and where the next object begins is not known"
	for name, tc := range map[string]struct {
		text   string
		told   string
		broken []string
		err    string
	}{
		"a field of another type": {
			text:   `{"kind":"List","apiVersion":"v1","items":[` + joinLines("", podA+",", `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"x"},`, `"spec":{"containers":"none"}},`, podB+"]}"),
			told:   "Pod default/a, Pod default/b",
			broken: []string{"dump.json: document 1, item 2 (line 3): Pod default/x: json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container"},
		},
		"a quantity that is none": {
			text:   joinLines(podA, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"capacity":{"nvidia.com/gpu":"eight"}}}`),
			told:   "Pod default/a",
			broken: []string{"dump.json: document 2 (line 2): Node n: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
		},
		"a field of another type, in YAML": {
			text:   joinLines("kind: List", "items:", "- kind: Pod", "  apiVersion: v1", "  metadata:", "    name: x", "  spec: []", "- "+podA),
			told:   "Pod default/a",
			broken: []string{"dump.json: document 1, item 1 (line 3): Pod x: json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"},
		},
		"an item that is no YAML": {
			text:   joinLines("items:", "- kind: Pod", "  apiVersion: v1", "- kind: Pod", "  metadata:", "    name: \"x", "- "+podA, "kind: List"),
			told:   "Pod default/a",
			broken: []string{"dump.json: document 1, item 1 (line 2): Pod: has no metadata.name", "dump.json: document 1, item 2 (line 4): yaml: line 7: found unexpected end of stream"},
		},
		"a document that is no YAML": {
			text:   joinLines(podA, "---", "kind: Pod", "metadata: }", "---", podB),
			told:   "Pod default/a, Pod default/b",
			broken: []string{"dump.json: document 2 (line 3): yaml: line 4: did not find expected node content"},
		},
		"behind the items": {
			text:   joinLines("items:", "- "+podA, "kind: List", "metadata: }"),
			told:   "Pod default/a",
			broken: []string{"dump.json: document 1 (line 1): yaml: line 4: did not find expected node content"},
		},
		"not objects": {
			text: `{"kind":"List","items":[1,null,"x",[],{},` + podA + `]}`,
			told: "Pod default/a",
			broken: []string{
				"dump.json: document 1, item 1 (line 1): want an object, have 1", "dump.json: document 1, item 2 (line 1): want an object, have null",
				`dump.json: document 1, item 3 (line 1): want an object, have "x"`, "dump.json: document 1, item 4 (line 1): want an object, have []",
				"dump.json: document 1, item 5 (line 1): has no kind, nor has the list it is in",
			},
		},
		"kinds that are none": {
			text:   podA + `{"kind":7,"apiVersion":"v1"}{"metadata":{}}`,
			told:   "Pod default/a",
			broken: []string{"dump.json: document 2 (line 1): json: cannot unmarshal number into Go struct field TypeMeta.kind of type string", "dump.json: document 3 (line 1): has no kind: {\"metadata\":{}}"},
		},
		"in a list in a list": {
			text:   joinLines(`{"kind":"List","items":[`, `{"kind":"List","items":[{"kind":"Node","apiVersion":"v1"},`+podA+`]}]}`),
			told:   "Pod default/a",
			broken: []string{"dump.json: document 1, item 1, item 1 (line 2): Node: has no metadata.name"},
		},
		"text between objects": {
			text:   joinLines(podA, "Error from server (Forbidden)", "---", podB),
			told:   "Pod default/a, Pod default/b",
			broken: []string{`dump.json: document 2 (line 2): want an object, have "Error from server (Forbidden)"`},
		},
		"no JSON any more": {
			text: joinLines(`{"kind":"List","items":[`, podA+",", `{"kind":"Pod",`, `"apiVersion":v1},`, podB+"]}"),
			told: "Pod default/a",
			err:  "dump.json: document 1, item 2 (line 4): invalid character 'v' looking for beginning of value" + notGuessed,
		},
		"a comma too many": {
			text: joinLines(`{"kind":"List","items":[`, podA+",", "]}", podB),
			told: "Pod default/a",
			err:  "dump.json: document 1, item 2 (line 3): invalid character ']' looking for beginning of value" + notGuessed,
		},
		"items that are no list": {
			text: joinLines(podA, `{"kind":"List","items":"none"}`),
			told: "Pod default/a",
			err:  "dump.json: document 2 (line 2): items is no list",
		},
		"cut off between items": {
			text: joinLines(`{"kind":"List","items":[`, podA+","),
			told: "Pod default/a",
			err:  "dump.json: document 1, item 2 (line 3): ends in the middle of an object: the dump is not complete, make it anew",
		},
		"cut off in an item": {
			text: `{"kind":"List","items":[` + "\n" + podA + ",\n" + podB[:40],
			told: "Pod default/a",
			err:  "dump.json: document 1, item 2 (line 3): ends in the middle of an object: the dump is not complete, make it anew",
		},
		"cut off before the end of the list": {
			text: `{"kind":"List","items":[` + podA,
			told: "Pod default/a",
			err:  "dump.json: document 1, item 1 (line 1): ends in the middle of an object: the dump is not complete, make it anew",
		},
		"cut off gzip": {
			text: string(gzipped([]byte(podA))[:40]),
			err:  "dump.json: gzip: the data ends too early, make the dump anew",
		},
		"all broken": {
			text:   joinLines(`{"kind":"Pod","apiVersion":"v1"}`, `{"kind":"Node","apiVersion":"v1"}`),
			broken: []string{"dump.json: document 1 (line 1): Pod: has no metadata.name", "dump.json: document 2 (line 2): Node: has no metadata.name"},
			err:    "dump.json: nothing in it can be read: document 1 (line 1): Pod: has no metadata.name (and 1 more); " + howTo,
		},
		"empty":           {text: "", err: "dump.json: is empty; " + howTo},
		"only comments":   {text: "# nothing\n\n---\n", err: "dump.json: is empty; " + howTo},
		"an empty List":   {text: `{"apiVersion":"v1","kind":"List","items":[]}`, err: "dump.json: has only empty lists; " + howTo},
		"nothing counted": {text: toText(`{"kind":"Job","apiVersion":"batch/v1"}`, 3) + `{"kind":"Secret","apiVersion":"v1"}`, err: "dump.json: has no pods and no nodes, only 3 Job.v1.batch, 1 Secret; " + howTo},
		"an error in place of a dump": {
			text:   "error: You must be logged in to the server (Unauthorized)\n",
			broken: []string{`dump.json: document 1 (line 1): has no kind: {"error":"You must be logged in to the s…`},
			err:    `dump.json: nothing in it can be read: document 1 (line 1): has no kind: {"error":"You must be logged in to the s…; ` + howTo,
		},
		"packed too often": {text: string(gzipped(gzipped(gzipped(gzipped([]byte(podA)))))), err: "dump.json: packed more than 3 times"},
		"not text":         {text: "\x89PNG\r\n\x1a\n\x00\x00", broken: []string{"dump.json: document 1 (line 1): yaml: invalid leading UTF-8 octet"}, err: "dump.json: nothing in it can be read: document 1 (line 1): yaml: invalid leading UTF-8 octet; " + howTo},
	} {
		t.Run(name, func(t *testing.T) {
			var h heard
			r, err := File(t.Context(), "dump.json", strings.NewReader(tc.text), &h)
			if h.names() != tc.told {
				t.Errorf("told was %q, want %q", h.names(), tc.told)
			}
			if fmt.Sprint(err) != tc.err && (err != nil || tc.err != "") {
				t.Errorf("the error is\n%v\nwant\n%s", err, tc.err)
			}
			for i := range max(len(r.Broken), len(tc.broken)) {
				var got, want string
				if i < len(r.Broken) {
					got = r.Broken[i].Error()
				}
				if i < len(tc.broken) {
					want = tc.broken[i]
				}
				if got != want {
					t.Errorf("broken is\n%s\nwant\n%s", got, want)
				}
			}
		})
	}
}

func toText(text string, n int) string { return strings.Repeat(text+"\n", n) }

// TestBrokenIsBounded: of very many broken objects a few are named, and all counted.
func TestBrokenIsBounded(t *testing.T) {
	r, err := File(t.Context(), "dump", strings.NewReader(podA+toText(`{"kind":"Pod","apiVersion":"v1"}`, 1000)), &heard{})
	if err != nil || len(r.Broken) != maxBroken || r.BrokenTotal != 1000 || r.Told.Pods != 1 {
		t.Errorf("%v; %d of %d broken, %d told", err, len(r.Broken), r.BrokenTotal, r.Told.Pods)
	}
}

// TestTooLarge: what would have to be held in one piece is bounded, and whoever has
// such a dump learns what to do.
func TestTooLarge(t *testing.T) {
	much := strings.Repeat("y", 1000)
	for name, tc := range map[string]struct{ before, again, want string }{
		"an item":      {podA + `{"kind":"List","items":[{"x":"`, "y", "document 2, item 1 (line 1): an object of more than 16 MiB"},
		"a field":      {podA + `{"kind":"Pod","x":"`, "y", "document 2 (line 1): an object of more than 16 MiB"},
		"fields":       {podA + `{"kind":"Pod"`, `,"x":"` + much + `"`, "document 2 (line 1): an object of more than 16 MiB"},
		"a YAML item":  {podA + "\nitems:\n- x: ", much + "\n  - ", "document 2, item 1 (line 3): an object of more than 16 MiB"},
		"a line":       {podA + "\nkind: ", "y", "document 2 (line 2): an object of more than 16 MiB (a list in YAML can be larger if it is laid out as kubectl does it; JSON can in any case)"},
		"a document":   {podA + "\nkind: List\nitems: [", "{x: " + much + "},\n", "document 2 (line 2): an object of more than 16 MiB (a list in YAML can be larger if it is laid out as kubectl does it; JSON can in any case)"},
		"without kind": {podA + `{"items":[`, `{"x":"` + much + `"},`, "document 2, item 14769 (line 1): too many items without a kind before their list says what it is: put its kind in front"},
	} {
		t.Run(name, func(t *testing.T) {
			var h heard
			text := io.MultiReader(strings.NewReader(tc.before), io.LimitReader(&repeated{text: []byte(tc.again)}, 4*maxObject))
			_, err := File(t.Context(), "dump", text, &h)
			if err == nil || err.Error() != "dump: "+tc.want {
				t.Errorf("the error is %v, want %s", err, tc.want)
			}
			if h.names() != "Pod default/a" {
				t.Errorf("told was %s", h.names())
			}
		})
	}
}

// TestUnreadable: that a dump cannot be read to its end is no end.
func TestUnreadable(t *testing.T) {
	why := errors.New("the disk is gone")
	for _, text := range []string{"", podA, podA + "\n", podA[:20], "kind: Pod", "{kind: Pod}"} {
		_, err := File(t.Context(), "dump", io.MultiReader(strings.NewReader(text), failing{why}), &heard{})
		if !errors.Is(err, why) {
			t.Errorf("after %q: %v", text, err)
		}
	}
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }
