package integration

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/lab/testkit"
)

// schemas are docs/schema as readers have them and, if strict, such that they
// refuse what they do not name: additions are allowed, but must be written down.
func schemas(t *testing.T, strict bool) map[string]*jsonschema.Schema {
	t.Helper()
	out := map[string]*jsonschema.Schema{}
	for _, name := range []string{publish.KeySummary, publish.KeyNodes} {
		file, err := os.Open("../../docs/schema/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		schema, err := jsonschema.UnmarshalJSON(file)
		if err != nil {
			t.Fatal(err)
		}
		if strict {
			forbidUnknown(schema, "")
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(name, schema); err != nil {
			t.Fatal(err)
		}
		if out[name], err = compiler.Compile(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// forbidUnknown closes every object but the one that is a part of others.
func forbidUnknown(schema any, name string) {
	object, ok := schema.(map[string]any)
	if !ok {
		return
	}
	if _, ok := object["properties"].(map[string]any); ok && name != "numbers" {
		object["unevaluatedProperties"] = false
	}
	for key, value := range object {
		forbidUnknown(value, key)
	}
}

// everything sets each field that is not set, so that none is left out of the
// document.
func everything(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.String() == "" {
			v.SetString("x")
		}
	case reflect.Int64, reflect.Int:
		if v.Int() == 0 {
			v.SetInt(2)
		}
	case reflect.Uint8: // a count.Wait
		v.SetUint(uint64(count.Untried))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for i := range v.NumField() {
			everything(v.Field(i))
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			everything(v.Index(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		everything(v.Elem())
	}
}

// aWorld has of everything that a cluster may have.
func aWorld() count.World {
	two := count.Amounts{{Resource: count.NVIDIA, Value: 2}}
	slots := count.Amounts{{Resource: "nvidia.com/gpu.shared", Value: 8}}
	w := count.World{
		NodesKnown: true,
		Nodes: []*count.Node{
			{Name: "a", Capacity: two, Allocatable: two, Labels: []count.Label{{Key: "nvidia.com/gpu.product", Value: "NVIDIA-H100"}}},
			{Name: "b", Capacity: two, States: []count.State{count.NotReady, count.Tainted}},
			{Name: "c", Capacity: slots, Allocatable: slots, Labels: []count.Label{{Key: "nvidia.com/gpu.shared.replicas", Value: "4"}}},
		},
		Pods: []*count.Pod{
			{Key: "ns/bound", Node: "a", Requests: two, Priority: -1},
			{Key: "ns/orphaned", Node: "gone", Requests: two, Priority: 2_000_000_000},
			{Key: "ns/over", Node: "b", Requests: two},
		},
		Observed: count.Observed{Pods: "1", Nodes: "1"},
	}
	for _, wait := range count.Waits {
		w.Pods = append(w.Pods, &count.Pod{Key: "other/" + wait.String(), Wait: wait, Requests: two})
	}
	return w
}

// documents publishes a snapshot and returns what a reader of the ConfigMap gets.
func (e *env) documents(snap *count.Snapshot) map[string]string {
	e.Helper()
	if _, err := e.publisher(func(*publish.Options) {}).Publish(e.Context(), snap); err != nil {
		e.Fatal(err)
	}
	cm, _ := live{e}.Published("gpu-capacity")
	return cm.Data
}

func validate(schema *jsonschema.Schema, document string) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// TestDocumentsFollowTheirSchema: those of a world with everything, of an empty one,
// of one without nodes, and one in which every field has a value.
func TestDocumentsFollowTheirSchema(t *testing.T) {
	e := newEnv(t)
	loose, strict := schemas(t, false), schemas(t, true)
	full := *count.Take(aWorld())
	everything(reflect.ValueOf(&full).Elem())
	full.Observed = count.Observed{Pods: "1"}
	withoutNodes := aWorld()
	withoutNodes.Nodes, withoutNodes.NodesKnown = nil, false
	for what, snap := range map[string]*count.Snapshot{
		"everything":    count.Take(aWorld()),
		"empty":         count.Take(count.World{NodesKnown: true, Observed: count.Observed{Pods: "1"}}),
		"without nodes": count.Take(withoutNodes),
		"each field":    &full,
	} {
		documents := e.documents(snap)
		for key := range loose {
			if err := validate(loose[key], documents[key]); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if err := validate(strict[key], documents[key]); err != nil {
				t.Errorf("%s: a property is not in docs/schema/%s: %v", what, key, err)
			}
		}
		if len(documents) != len(loose) {
			t.Errorf("%s: %d documents", what, len(documents))
		}
	}
}

// TestASchemaNoticesWhatIsWrong: every property that is there is required or typed.
func TestASchemaNoticesWhatIsWrong(t *testing.T) {
	e := newEnv(t)
	loose := schemas(t, false)
	documents := e.documents(count.Take(aWorld()))
	optional := map[string]bool{"replicas": true, "states": true, "sources": true, "dra": true, "claimed": true, "blocked": true}
	mutations := 0
	for key, schema := range loose {
		var document any
		e.must(json.Unmarshal([]byte(documents[key]), &document))
		testkit.EachProperty(document, func(object map[string]any, property string) {
			value := object[property]
			for what, wrong := range map[string]any{"null": nil, "of another type": []any{[]any{}}, "missing": "missing"} {
				if object[property] = wrong; wrong == "missing" {
					if optional[property] {
						continue
					}
					delete(object, property)
				}
				text, err := json.Marshal(document)
				e.must(err)
				if mutations++; validate(schema, string(text)) == nil {
					t.Errorf("%s: %s is %s, and that goes unnoticed", key, property, what)
				}
			}
			object[property] = value
		})
		if err := validate(schema, documents[key]); err != nil {
			t.Errorf("the test itself: %v", err)
		}
		object := document.(map[string]any)
		object["schemaVersion"] = "2"
		if text, err := json.Marshal(object); err != nil || validate(schema, string(text)) == nil {
			t.Errorf("%s: another schemaVersion goes unnoticed", key)
		}
		object["schemaVersion"], object["later"] = "1", true
		if text, err := json.Marshal(object); err != nil || validate(schema, string(text)) != nil {
			t.Errorf("%s: a property that was added is refused", key)
		}
	}
	t.Logf("%d mistakes noticed", mutations)
}
