package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestKrew: what krew is told to fetch is what was packed, each archive has what it
// is told to link, and the same input makes the same bytes.
func TestKrew(t *testing.T) {
	s := source
	s.Root = t.TempDir()
	write := func(path, text string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(filepath.Join(s.Root, "LICENSE"), "you may")
	var plugins []Binary
	for _, p := range Platforms {
		plugins = append(plugins, Binary{Program: Plugin, Platform: p, Path: write(filepath.Join(t.TempDir(), "x"), "program for "+p.String())})
	}
	dir, again := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, again} {
		if err := s.Krew(plugins, d); err != nil {
			t.Fatal(err)
		}
	}

	text, err := os.ReadFile(filepath.Join(dir, KrewManifest))
	if err != nil {
		t.Fatal(err)
	}
	var manifest krewPlugin
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Fatal(err)
	}
	// krew's own rules: a name of a plugin, a version that begins with v, a line of 50
	// characters.
	if spec := manifest.Spec; !regexp.MustCompile(`^v\d+\.\d+\.\d+`).MatchString(spec.Version) || len(spec.Short) > 50 || spec.Description == "" || spec.Homepage == "" {
		t.Errorf("krew would refuse %+v", spec)
	}
	if len(manifest.Spec.Platforms) != len(Platforms) {
		t.Fatalf("%d platforms, want %d", len(manifest.Spec.Platforms), len(Platforms))
	}
	for i, p := range manifest.Spec.Platforms {
		if want := map[string]string{"os": Platforms[i].OS, "arch": Platforms[i].Arch}; !cmp.Equal(want, p.Selector.Labels) {
			t.Errorf("platform %d is %v, want %v", i, p.Selector.Labels, want)
		}
		name := filepath.Base(p.URI)
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := hex.EncodeToString(sha256Of(content)); sum != p.SHA256 {
			t.Errorf("%s has the sum %s, and krew is told %s", name, sum, p.SHA256)
		}
		want := map[string]string{p.Bin: "program for " + Platforms[i].String(), "LICENSE": "you may"}
		if diff := cmp.Diff(want, unpacked(t, content)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if second, err := os.ReadFile(filepath.Join(again, name)); err != nil || !bytes.Equal(content, second) {
			t.Errorf("%s differs the second time: %v", name, err)
		}
	}
}

func unpacked(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}
