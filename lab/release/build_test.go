package release

import (
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// built builds the controller for Linux on this machine's processor.
func built(t *testing.T, root string) Binary {
	t.Helper()
	s := source
	s.Root = root
	t.Chdir(t.TempDir())
	list, err := s.Binaries(t.Context(), Controller, []Platform{{"linux", runtime.GOARCH}}, "dist")
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// TestTheSameSourcesMakeTheSameImage, from another folder and by somebody with
// other settings; and it is static, as an image that holds nothing else needs it.
func TestTheSameSourcesMakeTheSameImage(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	first := built(t, root)
	_, digest := image(t, []Binary{first})

	elsewhere := t.TempDir()
	for _, folder := range []string{"cmd", "internal"} {
		if err := os.CopyFS(filepath.Join(elsewhere, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(elsewhere, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"GOAMD64": "v3", "GOARM64": "v8.2", "CGO_ENABLED": "1", "GOFLAGS": "-ldflags=-w", "GOOS": "plan9"} {
		t.Setenv(name, value)
	}
	second := built(t, elsewhere)
	if _, again := image(t, []Binary{second}); again != digest {
		t.Errorf("digests %s and %s", digest, again)
	}
	if diff := cmp.Diff(string(first.SBOM), string(second.SBOM)); diff != "" {
		t.Errorf("SBOMs (-first +second):\n%s", diff)
	}
	isStatic(t, first)
	listsItsModules(t, first)
}

func isStatic(t *testing.T, b Binary) {
	t.Helper()
	program, err := elf.Open(b.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary is not static: it has a %v", part.Type)
		}
	}
}

// listsItsModules: the SBOM names the binary by its digest, and each module in it.
func listsItsModules(t *testing.T, b Binary) {
	t.Helper()
	var document bom
	if err := json.Unmarshal(b.SBOM, &document); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(b.Path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"std": runtime.Version()[len("go"):]}
	for _, module := range info.Deps {
		want[module.Path] = module.Version
	}
	got := map[string]string{}
	refs := map[string]bool{}
	for _, c := range document.Components {
		got[c.Name] = c.Version
		refs[c.Ref] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-binary +SBOM):\n%s", diff)
	}
	if len(want) < 50 || got["k8s.io/client-go"] == "" {
		t.Errorf("the binary is said to have %d modules", len(want))
	}
	if len(refs) != len(document.Components) {
		t.Error("two components have one reference")
	}
	content, err := os.ReadFile(b.Path)
	if err != nil {
		t.Fatal(err)
	}
	program := document.Metadata.Component
	if program.Version != "v1.2.3" || program.Hashes[0].Content != hex.EncodeToString(sha256Of(content)) {
		t.Errorf("it is about %+v", program)
	}
}
