package browser

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
	"github.com/gpu-summary/gpu-summary-controller/lab/testkit"
)

// described compiles the schemas of the OpenAPI document: as readers have them or, if
// strict, such that they refuse what they do not name.
func described(t *testing.T, document []byte, strict bool) func(schema string) *jsonschema.Schema {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	if strict {
		for name, schema := range value.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
			if name != "numbers" && name != "summary" && name != "row" { // they are parts of others
				forbidUnknown(schema)
			}
		}
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", value); err != nil {
		t.Fatal(err)
	}
	return func(schema string) *jsonschema.Schema {
		t.Helper()
		compiled, err := compiler.Compile("openapi.json#/components/schemas/" + schema)
		if err != nil {
			t.Fatal(err)
		}
		return compiled
	}
}

func forbidUnknown(schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		if _, ok := schema["properties"].(map[string]any); ok {
			schema["unevaluatedProperties"] = false
		}
		for _, inner := range schema {
			forbidUnknown(inner)
		}
	case []any:
		for _, inner := range schema {
			forbidUnknown(inner)
		}
	}
}

func fetch(t *testing.T, address string) (status int, body []byte) {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}

// TestAnswersFollowTheDocument, those of a cluster with everything, of an empty one, of
// one without nodes and of one that is stale; and nothing is in them that it does not
// name. It needs no browser.
func TestAnswersFollowTheDocument(t *testing.T) {
	w := synthetic(60)
	w.Nodes[0].Labels = append(w.Nodes[0].Labels, count.Label{Key: "nvidia.com/gpu.replicas", Value: "4"})
	w.Pods = append(w.Pods, &count.Pod{Key: "a/leaving", Node: "gpu-node-0001", Requests: count.Amounts{{Resource: count.NVIDIA, Value: 1}}, Deleting: true})
	w.DRA = &count.DRA{State: count.DRAForbidden, Reason: "why"}
	w.Observed = count.Observed{Pods: "1", Nodes: "2", Classes: "3", Slices: "4", Claims: "5"}
	old := show(w)
	old.alter(stale)
	checked := 0
	for name, c := range map[string]*cluster{
		"everything": show(w), "empty": show(count.World{NodesKnown: true, Observed: count.Observed{Pods: "1"}}),
		"without nodes": show(count.World{Pods: w.Pods, Observed: count.Observed{Pods: "1"}}), "stale": old,
	} {
		origin := c.serve(t, serve.Options{}) + strings.TrimSuffix(api.Prefix, "/")
		_, document := fetch(t, origin+"/openapi.json")
		loose, strict := described(t, document, false), described(t, document, true)
		for path, schema := range map[string]string{
			"/snapshot": "snapshot", "/nodes": "nodes", "/nodes?holders=true&limit=7": "nodes", "/pods": "pods", "/pods?pending=true&limit=2": "pods",
			"/fit?gpus=4&pods=3": "fitting", "/fit?gpus=9&model=Tesla-T4": "fitting", "/history": "history", "/nodes?x=1": "problem", "/nowhere": "problem",
		} {
			status, body := fetch(t, origin+path)
			if status == http.StatusNotImplemented {
				schema = "problem"
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
			if err != nil {
				t.Fatalf("%s, %s: %v", name, path, err)
			}
			if err := loose(schema).Validate(value); err != nil {
				t.Errorf("%s, %s: %v", name, path, err)
			}
			if err := strict(schema).Validate(value); err != nil {
				t.Errorf("%s, %s: a property is not described: %v", name, path, err)
			}
			checked++
		}
	}
	if checked != 40 {
		t.Errorf("%d answers", checked)
	}
}

// TestTheDocumentNoticesWhatIsWrong: each property that is there is required or typed.
func TestTheDocumentNoticesWhatIsWrong(t *testing.T) {
	old := show(synthetic(60))
	old.alter(stale)
	origin := old.serve(t, serve.Options{}) + strings.TrimSuffix(api.Prefix, "/")
	_, document := fetch(t, origin+"/openapi.json")
	schemas, mistakes := described(t, document, false), 0
	for path, schema := range map[string]string{
		"/snapshot": "snapshot", "/nodes?holders=true&limit=3": "nodes", "/pods?limit=3": "pods", "/fit?gpus=8&pods=2": "fitting", "/history": "history",
	} {
		_, body := fetch(t, origin+path)
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			t.Fatal(err)
		}
		testkit.EachProperty(value, func(object map[string]any, property string) {
			before := object[property]
			object[property] = []any{[]any{}}
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			wrong, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if mistakes++; schemas(schema).Validate(wrong) == nil {
				t.Errorf("%s: %s is of another type, and that goes unnoticed", path, property)
			}
			object[property] = before
		})
	}
	t.Logf("%d mistakes noticed", mistakes)
}
