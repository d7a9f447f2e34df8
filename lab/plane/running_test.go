package plane_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

func TestAnnouncedPlaneIsFoundUntilItStops(t *testing.T) {
	p := labPlane(t)
	// Not in the user's cache: a command run meanwhile must not find this one.
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	expectRunning(t)
	if err := p.Announce(); err != nil {
		t.Fatal(err)
	}
	expectRunning(t, p.Kubeconfig())

	// A record whose lab is gone: its directory has a lock that nobody holds.
	dead := t.TempDir()
	if err := os.WriteFile(filepath.Join(dead, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Glob(filepath.Join(cache, "*", "running", "*.json"))
	if err != nil || len(records) != 1 {
		t.Skipf("records are kept elsewhere on this system: %v %v", records, err)
	}
	record := filepath.Join(filepath.Dir(records[0]), "1.json")
	if err := os.WriteFile(record, fmt.Appendf(nil, `{"pid": 1, "dir": %q}`, dead), 0o600); err != nil {
		t.Fatal(err)
	}
	expectRunning(t, p.Kubeconfig())
	if exists(record) {
		t.Error("the record of a lab that is gone was kept")
	}
}

func expectRunning(t *testing.T, want ...string) {
	t.Helper()
	found, err := plane.FindRunning()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range found {
		got = append(got, r.Kubeconfig)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("running labs %q, want %q", got, want)
	}
}
