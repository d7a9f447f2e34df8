package gather

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzFile looks for a dump that cannot be read to its end, or that is read in
// another way when it is packed or cut into pieces.
func FuzzFile(f *testing.F) {
	objects := dumpedObjects(rand.New(rand.NewPCG(1, 1)), 3)
	for _, write := range forms {
		f.Add(write(objects))
	}
	for _, pack := range wraps {
		f.Add(pack([]byte(podA)))
	}
	for _, text := range []string{"", "{", "[", "]", "-", "---", "- -", "items:", "items:\n-", "items:\n -\n- ", "{}{}[[]]", "\xef\xbb", "\x1f\x8b", "\xff\xfe\x00", "%\n#", "a: &a [*a]", "? - x\n: - y\nitems:\n- {}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var once, packed heard
		r, err := File(t.Context(), "dump", bytes.NewReader(text), &once)
		again, errPacked := File(t.Context(), "dump", bytes.NewReader(gzipped(text)), &packed)
		if !isPacked(text) && (!slices.Equal(once.objects, packed.objects) || message(err) != message(errPacked) || again.BrokenTotal != r.BrokenTotal) {
			t.Errorf("told was %q, %v; packed %q, %v", once.objects, err, packed.objects, errPacked)
		}
		if r.Told.Total() != len(once.objects) || err == nil && r.BrokenTotal > 0 && len(r.Broken) == 0 {
			t.Errorf("%+v, but %d were told", r, len(once.objects))
		}
	})
}

// isPacked: packed once more may be once too often.
func isPacked(text []byte) bool {
	return bytes.HasPrefix(text, []byte{0x1f, 0x8b}) || bytes.IndexByte(text[:min(len(text), 3)], 0) >= 0 || len(text) > 1 && (text[0] >= 0xfe)
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzObject looks for an object that is told differently in JSON and in YAML, alone
// and in lists.
func FuzzObject(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(toJSON(dumpedObject(rand.New(rand.NewPCG(seed, 2)), 0)))
	}
	f.Add([]byte(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"},"status":{"capacity":{"nvidia.com/gpu":8}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		asYAML, err := yaml.JSONToYAML(raw)
		if err != nil || !bytes.HasPrefix(raw, []byte("{")) {
			return
		}
		// What YAML makes of the text is where to begin: it has no duplicate keys.
		raw, err = yaml.YAMLToJSON(asYAML)
		if err != nil || len(raw) == 0 || raw[0] != '{' {
			return
		}
		list := slices.Concat([]byte(`{"items":[`), raw, []byte(`],"kind":"List"}`))
		listAsYAML, err := yaml.JSONToYAML(list)
		if again, errAgain := yaml.YAMLToJSON(listAsYAML); err != nil || errAgain != nil || !bytes.Equal(again, list) {
			return // some characters of JSON are not what they were once they have been through YAML
		}
		alone := tellings(t, raw)
		for name, text := range map[string][]byte{
			"YAML":         asYAML,
			"list in JSON": list,
			"list in YAML": listAsYAML,
		} {
			if got := tellings(t, text); got != alone {
				t.Errorf("%s: told was %q, want %q\n%s", name, got, alone, text)
			}
		}
	})
}

// tellings is what is told of a dump, and how many objects in it are broken.
func tellings(t *testing.T, text []byte) string {
	var h heard
	r, _ := File(t.Context(), "dump", bytes.NewReader(text), &h)
	return fmt.Sprint(r.BrokenTotal, r.Ignored, h.objects)
}
