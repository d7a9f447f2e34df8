package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestUpNamesWhatARealNodeLacks before it builds or starts anything.
func TestUpNamesWhatARealNodeLacks(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // where no program is, go neither
	dir := filepath.Join(t.TempDir(), "lab")
	var stdout, stderr bytes.Buffer
	err := up(t.Context(), &stdout, &stderr, upOptions{realNode: true, dir: dir})
	want := "apt-get install containerd"
	if runtime.GOOS != "linux" {
		want = "a real node needs Linux"
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says %q", err, want)
	}
	if _, err := os.Stat(dir); err == nil || stdout.Len()+stderr.Len() > 0 {
		t.Errorf("directory %v, output %q%q; want nothing to have happened", err, stdout.String(), stderr.String())
	}
}
