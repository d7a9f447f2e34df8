package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The programs under test, built as they are shipped: a race detector in them would be
// what is measured.
var builtController, builtLab string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bench-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	builtController, builtLab = filepath.Join(dir, "gpu-summary-controller"), filepath.Join(dir, "lab")
	for _, b := range []struct{ module, output, program string }{
		{filepath.Join("..", ".."), builtController, "./cmd/gpu-summary-controller"},
		{"..", builtLab, "./cmd/lab"},
	} {
		build := exec.Command("go", "build", "-o", b.output, b.program)
		build.Dir, build.Stdout, build.Stderr = b.module, os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n", b.program, err)
			return 1
		}
	}
	return m.Run()
}
