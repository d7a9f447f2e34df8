package install_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gpu-summary/gpu-summary-controller/lab/install"
)

var tools install.Tools

func TestMain(m *testing.M) { os.Exit(withTools(m)) }

func withTools(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gpu-summary-tools-")
	if err == nil {
		defer os.RemoveAll(dir)
		tools, err = install.Build(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// render renders the chart, or fails the test.
func render(t *testing.T, values string) string {
	t.Helper()
	text, err := tools.Render(t.Context(), "gpu-summary", values)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// objects reads manifests and keys each object by what it is called.
func objects(t *testing.T, manifest string) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for decoder := yaml.NewYAMLOrJSONDecoder(bufio.NewReader(strings.NewReader(manifest)), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, manifest)
		}
		if object.Object == nil {
			continue
		}
		key := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		if found[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		found[key] = object
	}
}
