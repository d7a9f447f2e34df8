package compile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeModule is a module of our name with one command and a package it imports.
func fakeModule(t *testing.T, command, main string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module "+modulePath+"\n\ngo 1.26.0\n")
	put(t, filepath.Join(dir, "cmd", command, "main.go"), main)
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

// says is a package whose text no build on this machine has seen.
func says(t *testing.T, module, text string) {
	t.Helper()
	put(t, filepath.Join(module, "words", "words.go"), "package words\n\nconst Said = \""+text+" in "+module+"\"\n")
}

const printsWords = `package main

import (
	"fmt"

	"` + modulePath + `/words"
)

func main() { fmt.Print(words.Said) }
`

// TestIntoFollowsTheSources: what runs is always made from what is there, and
// nothing is said or linked when that has not changed.
func TestIntoFollowsTheSources(t *testing.T) {
	module, dir := fakeModule(t, "judge", printsWords), t.TempDir()
	job := Job{Name: "judge", Of: "the judge", Mains: []string{"./cmd/judge"}}
	build := func(text string) string {
		t.Helper()
		says(t, module, text)
		var out bytes.Buffer
		if err := job.Into(t.Context(), module, dir, &out); err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command(filepath.Join(dir, "judge")).CombinedOutput()
		if err != nil || string(said) != text+" in "+module {
			t.Errorf("the command says %q, %v; want %q", said, err, text)
		}
		return out.String()
	}
	stat := func() os.FileInfo {
		t.Helper()
		info, err := os.Stat(filepath.Join(dir, "judge"))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if out := build("one"); !strings.HasPrefix(out, "building the judge, packages to compile: 1\n") || !strings.HasSuffix(out, "linking\n") {
		t.Errorf("first build says %q", out)
	}
	before := stat()
	if out := build("one"); out != "" || !os.SameFile(before, stat()) {
		t.Errorf("second build says %q, or made the command again", out)
	}
	if out := build("two"); !strings.HasPrefix(out, "building the judge, packages to compile: 1\n") {
		t.Errorf("after a change it says %q", out)
	}
	if err := os.Remove(filepath.Join(dir, "judge")); err != nil {
		t.Fatal(err)
	}
	if out := build("two"); out != "linking the judge\n" {
		t.Errorf("with all but the command there it says %q", out)
	}
}

func TestIntoShowsTheCompilersWords(t *testing.T) {
	module := fakeModule(t, "judge", "package main\n\nfunc main() { undefinedFunction() }\n")
	job := Job{Name: "judge", Mains: []string{"./cmd/judge"}}
	err := job.Into(t.Context(), module, t.TempDir(), &bytes.Buffer{})
	if err == nil || !strings.HasPrefix(err.Error(), "build judge: ") || !strings.Contains(err.Error(), "undefined: undefinedFunction") {
		t.Errorf("error %v, want the compiler's", err)
	}
}

func TestIntoEndsWithItsContext(t *testing.T) {
	module := fakeModule(t, "judge", "package main\n\nfunc main() {}\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("no longer wanted")
	cancel(stop)
	err := Job{Name: "judge", Mains: []string{"./cmd/judge"}}.Into(ctx, module, t.TempDir(), &bytes.Buffer{})
	if !errors.Is(err, stop) {
		t.Errorf("error %v, want the cause", err)
	}
}

func TestLongBuildsAreAnnounced(t *testing.T) {
	for packages, want := range map[int]string{
		manyPackages:     "building the judge from source: 300 packages, for ever\n",
		manyPackages - 1: "building the judge, packages to compile: 299\n",
	} {
		var out bytes.Buffer
		if (Job{Of: "the judge", Long: "for ever"}).announce(&out, packages); out.String() != want {
			t.Errorf("says %q, want %q", out.String(), want)
		}
	}
}
