package publish

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

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

var awkward = []string{"", "n-1", `quote"d`, `back\slash`, "<&>", "line\nbreak", "é", "\u2028", "bad\xffutf8", "\x7f", "NVIDIA A100-SXM4-80GB"}

// random fills a value with anything, fields that are not known here included.
func random(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(awkward[r.IntN(len(awkward))])
	case reflect.Int64, reflect.Int:
		v.SetInt([]int64{0, 1, 7, -3, 1 << 62}[r.IntN(5)])
	case reflect.Uint8: // a count.Wait
		v.SetUint(r.Uint64N(uint64(len(count.Waits)) + 1))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Struct:
		for i := range v.NumField() {
			random(r, v.Field(i))
		}
	case reflect.Slice:
		if n := r.IntN(4); n > 0 { // else nil
			v.Set(reflect.MakeSlice(v.Type(), n-1, n-1))
		}
		for i := range v.Len() {
			random(r, v.Index(i))
		}
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			random(r, v.Elem())
		}
	default:
		panic(fmt.Sprintf("a field of kind %s: teach this test, and appendRow, about it", v.Kind()))
	}
}

// TestRowsAreRenderedAsEncodingJSONWould: a field that is added to count.Row and
// not to appendRow fails here.
func TestRowsAreRenderedAsEncodingJSONWould(t *testing.T) {
	r := seeded(t)
	for range 20_000 {
		var row count.Row
		random(r, reflect.ValueOf(&row).Elem())
		want, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendRow(nil, &row); string(got) != string(want) {
			t.Fatalf("rendered is\n%s\nwant\n%s", got, want)
		}
	}
}

// TestDocumentsHaveNoNull, whatever the snapshot lacks, and nothing of it changes
// when it is rendered.
func TestDocumentsHaveNoNull(t *testing.T) {
	r := seeded(t)
	for range 500 {
		var snap count.Snapshot
		random(r, reflect.ValueOf(&snap).Elem())
		before := fmt.Sprintf("%#v", snap)
		text := summaryDocument(&snap)
		var document map[string]any
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if where := null("", document); where != "" {
			t.Fatalf("%s is null in %s", where, text)
		}
		if document["schemaVersion"] != "1" || document["observed"] != nil {
			t.Fatalf("schemaVersion is %v, observed is %v", document["schemaVersion"], document["observed"])
		}
		if fmt.Sprintf("%#v", snap) != before {
			t.Fatal("rendering changed the snapshot")
		}
	}
	if got, want := summaryDocument(count.Take(count.World{})), `"resources":[]`; !strings.Contains(got, want) {
		t.Errorf("of an empty world it says %s", got)
	}
}

func null(path string, v any) string {
	switch v := v.(type) {
	case nil:
		return path
	case map[string]any:
		for key, value := range v {
			if where := null(path+"."+key, value); where != "" {
				return where
			}
		}
	case []any:
		for i, value := range v {
			if where := null(fmt.Sprintf("%s[%d]", path, i), value); where != "" {
				return where
			}
		}
	}
	return ""
}

// TestNodesDocument: one document, rows in the order of the snapshot, also when
// there are none.
func TestNodesDocument(t *testing.T) {
	capacity := capacitySet("gpu-capacity")
	for _, snap := range []*count.Snapshot{snapshot(true), {}} {
		text := rendered(capacity, snap).data[KeyNodes]
		var document struct {
			SchemaVersion string
			Rows          []count.Row
		}
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if document.SchemaVersion != "1" || document.Rows == nil || len(document.Rows) != len(snap.Rows) {
			t.Errorf("of %d rows it says %s", len(snap.Rows), text)
		}
		for i, row := range document.Rows {
			if !reflect.DeepEqual(row, snap.Rows[i]) {
				t.Errorf("row %d is %+v, want %+v", i, row, snap.Rows[i])
			}
		}
	}
}

// TestEqualCountsGiveEqualBytes: neither the order of the world nor the versions
// it was seen at show in what is compared.
func TestEqualCountsGiveEqualBytes(t *testing.T) {
	a, b := snapshot(true), snapshot(true)
	b.Observed = count.Observed{Pods: "99", Nodes: "98"}
	for _, s := range []set{summarySet("gpu-summary", count.NVIDIA), capacitySet("gpu-capacity")} {
		one, other := rendered(s, a), rendered(s, b)
		one.observed, other.observed = "", ""
		if !reflect.DeepEqual(one, other) {
			t.Errorf("%s: %v and %v", s.name, one, other)
		}
	}
}

// TestEveryVersionIsObserved: a store that is added to count.Observed and not to
// the annotation fails here.
func TestEveryVersionIsObserved(t *testing.T) {
	var o count.Observed
	v := reflect.ValueOf(&o).Elem()
	for i := range v.NumField() {
		v.Field(i).SetString(fmt.Sprint(100 + i))
	}
	text := versions(o)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if want := fmt.Sprintf("%s@%d", name, 100+i); !strings.Contains(" "+text+" ", " "+want+" ") {
			t.Errorf("%q does not say %s", text, want)
		}
	}
}

// TestSaysIsExact: what is there is taken as right only if it is.
func TestSaysIsExact(t *testing.T) {
	for _, s := range []set{summarySet("gpu-summary", count.NVIDIA), capacitySet("gpu-capacity")} {
		want := rendered(s, snapshot(true))
		var tab table
		tab.reset(s.key)
		s.rows(snapshot(true), &tab)
		head := s.head(snapshot(true)).data
		says := func(data map[string]string) bool { return tab.says(data, head, tab.pieces) }
		if !says(want.data) {
			t.Errorf("%s: what was rendered is not taken as right", s.name)
		}
		for key, value := range want.data {
			for what, change := range map[string]func(map[string]string){
				"missing":    func(data map[string]string) { delete(data, key) },
				"renamed":    func(data map[string]string) { delete(data, key); data["x"] = value },
				"additional": func(data map[string]string) { data["x"] = value },
				"longer":     func(data map[string]string) { data[key] += " " },
				"shorter":    func(data map[string]string) { data[key] = value[:len(value)-1] },
				"other":      func(data map[string]string) { data[key] = "x" + value[1:] },
				"empty":      func(data map[string]string) { data[key] = "" },
			} {
				data := map[string]string{}
				for k, v := range want.data {
					data[k] = v
				}
				change(data)
				if says(data) {
					t.Errorf("%s with %s %s is taken as right", s.name, what, key)
				}
			}
		}
		if says(nil) {
			t.Errorf("%s: nothing is taken as right", s.name)
		}
	}
}
