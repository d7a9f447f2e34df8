package plane

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const labModule = "github.com/gpu-summary/gpu-summary-controller/lab"

// fakeModule is a module of our name with mains that compile in a second.
func fakeModule(t *testing.T, main string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module "+labModule+"\n\ngo 1.26.0\n")
	for _, name := range []string{"controlplane", "kwok"} {
		put(t, filepath.Join(dir, "cmd", name, "main.go"), main)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBuildOnceThenFindAndPrune(t *testing.T) {
	module := fakeModule(t, "package main\n\nfunc main() { println(\"built\") }\n")
	cache := t.TempDir()
	abandoned := filepath.Join(cache, buildPrefix+"1")
	unused := filepath.Join(cache, KubernetesVersion+"-unused")
	inUse := filepath.Join(cache, KubernetesVersion+"-in-use")
	otherVersion := filepath.Join(cache, "v1.36.0-unused")
	for _, dir := range []string{abandoned, unused, inUse, otherVersion} {
		put(t, filepath.Join(dir, lockName), "")
	}
	held := Binaries{ControlPlane: filepath.Join(inUse, "controlplane")}.hold()
	if held == nil {
		t.Fatal("hold did not lock the entry")
	}
	defer held.Close()

	entry := filepath.Join(cache, KubernetesVersion+"-new")
	var out bytes.Buffer
	if err := controlPlane.buildInto(t.Context(), cache, entry, module, &out); err != nil {
		t.Fatal(err)
	}
	built := binariesIn(entry)
	for _, path := range []string{built.ControlPlane, built.KWOK} {
		if said, err := exec.Command(path).CombinedOutput(); err != nil || string(said) != "built\n" {
			t.Errorf("run %s: %q, %v", path, said, err)
		}
	}
	for dir, stays := range map[string]bool{abandoned: false, unused: false, inUse: true, otherVersion: true, entry: true} {
		if _, err := os.Stat(dir); (err == nil) != stays {
			t.Errorf("after the build %s: %v; should stay: %t", filepath.Base(dir), err, stays)
		}
	}

	out.Reset()
	if err := controlPlane.buildInto(t.Context(), cache, entry, module, &out); err != nil || out.Len() > 0 {
		t.Errorf("second build: %v, says %q; want silence", err, out.String())
	}
}

func TestFailedBuildShowsTheCompilersWords(t *testing.T) {
	module := fakeModule(t, "package main\n\nfunc main() { undefinedFunction() }\n")
	cache := t.TempDir()
	var out bytes.Buffer
	err := controlPlane.buildInto(t.Context(), cache, filepath.Join(cache, KubernetesVersion+"-x"), module, &out)
	if err == nil || !strings.Contains(err.Error(), "undefined: undefinedFunction") {
		t.Errorf("error %v, want the compiler's", err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "*-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("a failed build left %v (%v)", left, err)
	}
}

func TestKeyFollowsWhatIsBuilt(t *testing.T) {
	module := fakeModule(t, "package main\n\nfunc main() {}\n")
	key := func() string {
		t.Helper()
		key, err := controlPlane.key(t.Context(), module)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	first := key()
	put(t, filepath.Join(module, "cmd", "lab", "main.go"), "package main")
	put(t, filepath.Join(module, "plane", "tether", "x_test.go"), "package tether")
	if key() != first {
		t.Error("the key changes with files that are not part of the binaries")
	}
	for _, path := range []string{"cmd/kwok/main.go", "cmd/controlplane/main.go", "plane/tether/tether.go", "go.mod", "go.sum"} {
		before := key()
		put(t, filepath.Join(module, path), "// changed\nmodule "+labModule+"\n")
		if key() == before {
			t.Errorf("the key does not change with %s", path)
		}
	}
}

// TestNodeIsBuiltByItself: what only a real node needs makes nobody link the control
// plane again, and the other way round.
func TestNodeIsBuiltByItself(t *testing.T) {
	module := fakeModule(t, "package main\n\nfunc main() {}\n")
	key := func(p programs) string {
		t.Helper()
		key, err := p.key(t.Context(), module)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	for path, changes := range map[string]*programs{
		"cmd/kubelet/main.go":        &nodePrograms,
		"cmd/kubelet-keeper/main.go": &nodePrograms,
		"realnode/keeper/keep.go":    &nodePrograms,
		"cmd/kwok/main.go":           &controlPlane,
	} {
		before := map[*programs]string{&nodePrograms: key(nodePrograms), &controlPlane: key(controlPlane)}
		put(t, filepath.Join(module, path), "// changed\n")
		for p, was := range before {
			if changed := key(*p) != was; changed != (p == changes) {
				t.Errorf("%s changes the key of the %s: %t", path, p.job.Name, changed)
			}
		}
	}
}
