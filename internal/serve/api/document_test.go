package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// TestTheDocumentHasTheSchemasOfWhatIsPublished: they are in it as they are in
// docs/schema, and its paths are those that are served.
func TestTheDocumentHasTheSchemasOfWhatIsPublished(t *testing.T) {
	type object = map[string]any
	document := get[object](t, aView(), "openapi.json")
	schemas := document["components"].(object)["schemas"].(object)
	for _, name := range []string{"summary.json", "nodes.json"} {
		text, err := os.ReadFile("../../../docs/schema/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var published object
		if err := json.Unmarshal(bytes.ReplaceAll(text, []byte("#/$defs/"), []byte("#/components/schemas/")), &published); err != nil {
			t.Fatal(err)
		}
		parts := published["$defs"].(object)
		if name == "summary.json" {
			for _, key := range []string{"$defs", "$schema", "$id", "title"} {
				delete(published, key)
			}
			parts["summary"] = published
		}
		for part, want := range parts {
			if diff := gocmp.Diff(want, schemas[part]); diff != "" {
				t.Errorf("schema %s is not that of docs/schema/%s:\n%s", part, name, diff)
			}
		}
	}
	served := api.Handlers(nil)
	for path := range document["paths"].(object) {
		if served[strings.TrimSuffix(api.Prefix, "/")+path] == nil {
			t.Errorf("%s is described and not served", path)
		}
	}
	for path := range served {
		if path != "/api/" && document["paths"].(object)["/"+strings.TrimPrefix(path, api.Prefix)] == nil {
			t.Errorf("%s is served and not described", path)
		}
	}
	// Every parameter that is described is one, and those that are not named in a
	// refusal are described.
	for path, item := range document["paths"].(object) {
		parameters, _ := item.(object)["get"].(object)["parameters"].([]any)
		var names []string
		for _, p := range parameters {
			names = append(names, p.(object)["name"].(string))
		}
		got := problem(t, aView(), strings.TrimPrefix(path, "/")+"?zz=1", http.StatusBadRequest)
		_, list, _ := strings.Cut(got, "there are ")
		known := strings.Split(list, ", ")
		if list == "none" {
			known = nil
		}
		slices.Sort(names)
		slices.Sort(known)
		if !slices.Equal(names, known) {
			t.Errorf("%s: parameters %q are described, and %q taken", path, names, known)
		}
	}
}
