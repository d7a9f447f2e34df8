package main

import (
	"bytes"
	"io"
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
	err := up(t.Context(), &stdout, &stderr, upOptions{realNodes: 1, dir: dir})
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

// TestUpTakesANumberOfRealNodes, which without one is one.
func TestUpTakesANumberOfRealNodes(t *testing.T) {
	for _, tc := range []struct {
		args string
		want string // --real-node, or what an error says
	}{
		{"", "0"},
		{"--real-node", "1"},
		{"--real-node=3", "3"},
		{"--real-node 3", "an equals sign, --real-node=2"},
		{"--real-node=some", "invalid argument"},
	} {
		cmd := newUpCommand()
		err := cmd.ParseFlags(strings.Fields(tc.args))
		if err == nil {
			err = cmd.Args(cmd, cmd.Flags().Args())
		}
		got := cmd.Flags().Lookup("real-node").Value.String()
		if err != nil {
			got = err.Error()
		}
		if got != tc.want && (err == nil || !strings.Contains(got, tc.want)) {
			t.Errorf("%q: %s, want %s", tc.args, got, tc.want)
		}
	}
	for want, o := range map[string]upOptions{
		"fewer than none":             {realNodes: -1},
		"--image goes with --real-no": {images: []string{"x.tar"}},
	} {
		if err := up(t.Context(), io.Discard, io.Discard, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one that says %q", o, err, want)
		}
	}
}
