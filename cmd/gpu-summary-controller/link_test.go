package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMethodsAreCalledByTheirNamesInTheSource alone. Where a program can look a method
// up by a name that is made at run time, as text/template and html/template do when they
// execute, the linker keeps every exported method of every type: this program was twice
// as large, and its peak of memory 16 MiB higher.
func TestMethodsAreCalledByTheirNamesInTheSource(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program")
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w -dumpdep", "-o", filepath.Join(t.TempDir(), "program"), ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out[max(0, len(out)-2000):])
	}
	// The linker says of each symbol which one it was reached from first, and marks
	// functions that look up methods by what they are given.
	const mark = " <ReflectMethod>"
	reachedFrom := make(map[string]string)
	var found []string
	for line := range strings.Lines(string(out)) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(to, " <")
		if reachedFrom[name] == "" {
			reachedFrom[name], _, _ = strings.Cut(from, " <")
		}
		if strings.HasSuffix(to, mark) {
			found = append(found, name)
		}
	}
	if reachedFrom["main.main"] == "" {
		t.Fatalf("the linker does not say what it links: %.2000s", out)
	}
	if len(found) == 0 {
		return
	}
	chain := found[:1]
	for range 100 { // there are no circles, and nothing is as deep
		from := reachedFrom[chain[len(chain)-1]]
		if from == "" {
			break
		}
		chain = append(chain, from)
	}
	slices.Reverse(chain)
	t.Errorf("the linker keeps all methods, because %s looks one up by name (%d functions do). Whoever calls it should do without; it is reached by\n  %s",
		found[0], len(found), strings.Join(chain, "\n  "))
}
