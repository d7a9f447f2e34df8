package compile

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestSourcesAreFoundAroundTheWorkingDirectory(t *testing.T) {
	module := fakeModule(t, "kwok", "package main\n")
	inside := filepath.Join(module, "cmd", "kwok")
	t.Chdir(inside)
	got, err := Module()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := filepath.EvalSymlinks(module); err != nil || got != want {
		t.Errorf("module directory %s, want %s (%v)", got, want, err)
	}

	t.Chdir(t.TempDir())
	if dir, err := Module(); err == nil || !strings.Contains(err.Error(), "inside a checkout") {
		t.Errorf("outside a checkout: %q, %v; want an error that says what to do", dir, err)
	}
}
