package install_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheManifestsAreTheChart with its default values, to the letter, so that
// nobody has to ask which of the two is right.
func TestTheManifestsAreTheChart(t *testing.T) {
	files, err := tools.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(tools.Manifests(), name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is out of date, run \"make manifests\" (-chart +file):\n%s", name, diff)
		}
	}
}

// TestTheKustomizationIsComplete: it has every object of the chart, and the
// namespace they are in.
func TestTheKustomizationIsComplete(t *testing.T) {
	kustomized, err := tools.Kustomize(t.Context(), tools.Manifests())
	if err != nil {
		t.Fatal(err)
	}
	got, want := objects(t, kustomized), objects(t, render(t, ""))
	namespace := got["Namespace /gpu-summary"]
	if namespace == nil {
		t.Fatalf("no namespace among %v", slices.Sorted(maps.Keys(got)))
	}
	if level := namespace.GetLabels()["pod-security.kubernetes.io/enforce"]; level != "restricted" {
		t.Errorf("the namespace enforces %q, want restricted", level)
	}
	delete(got, "Namespace /gpu-summary")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-chart +kustomization):\n%s", diff)
	}
}

// TestAnOverlayMovesEverything: another namespace and another image are two lines
// of somebody else's kustomization.
func TestAnOverlayMovesEverything(t *testing.T) {
	dir := t.TempDir()
	base, err := filepath.Rel(dir, tools.Manifests())
	if err != nil {
		t.Fatal(err)
	}
	overlay := "namespace: elsewhere\nresources: [" + base + "]\n" +
		"images: [{name: gpu-summary/gpu-summary-controller, newName: registry.example.com/gpu, newTag: v9}]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	kustomized, err := tools.Kustomize(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	values := "image: {repository: registry.example.com/gpu, tag: v9}"
	moved, err := tools.Render(t.Context(), "elsewhere", values)
	if err != nil {
		t.Fatal(err)
	}
	got, want := objects(t, kustomized), objects(t, moved)
	if got["Namespace /elsewhere"] == nil {
		t.Errorf("the namespace is not renamed: %v", slices.Sorted(maps.Keys(got)))
	}
	delete(got, "Namespace /elsewhere")
	// But what is for Events about nodes belongs where it was. Kustomize knows no
	// exceptions, so those are not written then: docs/install.md says it.
	for _, kind := range []string{"Role", "RoleBinding"} {
		delete(got, kind+" elsewhere/gpu-summary-controller-nodes")
		delete(want, kind+" default/gpu-summary-controller-nodes")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-chart +overlay):\n%s", diff)
	}
}
