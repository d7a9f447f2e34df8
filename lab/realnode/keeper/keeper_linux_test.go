package keeper

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesTellWhetherTheirLabLives(t *testing.T) {
	own, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	if own == other {
		t.Errorf("two nodes are called %s", own)
	}
	// A process that has ended. Should its number be given away again by now, then to
	// one that started later.
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		own: false,
		fmt.Sprintf("%s%d-1-1", Prefix, os.Getpid()):       true, // its number was ours before
		fmt.Sprintf("%s%d-1-1", Prefix, ended.Process.Pid): true,
		"somebody-elses": false,
		Prefix + "1":     false,
		strings.Replace(own, Prefix, "gpu-summary-lab-", 1): false,
	} {
		if got := abandoned(name); got != want {
			t.Errorf("abandoned(%q) is %t, want %t", name, got, want)
		}
	}
}

// TestSweepTakesWhatIsAbandoned, control groups within groups as well, and nothing else.
func TestSweepTakesWhatIsAbandoned(t *testing.T) {
	if os.Geteuid() != 0 || len(hierarchies()) == 0 {
		t.Skip("needs root and control groups")
	}
	living, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	dead := fmt.Sprintf("%s%d-1-1", Prefix, os.Getpid())
	for _, id := range []string{living, dead} {
		if err := newGroups(id).make(); err != nil {
			t.Fatal(err)
		}
		for _, dir := range hierarchies() {
			if err := os.MkdirAll(filepath.Join(dir, id, "kubepods", "pod1"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(shortDir, id, "lib"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := newGroups(id).remove(); err != nil {
				t.Error(err)
			}
			_ = os.RemoveAll(filepath.Join(shortDir, id))
		})
	}
	sweep()
	for _, dir := range append(hierarchies(), shortDir) {
		for id, stays := range map[string]bool{living: true, dead: false} {
			if _, err := os.Stat(filepath.Join(dir, id)); (err == nil) != stays {
				t.Errorf("%s in %s: %v; should stay: %t", id, dir, err, stays)
			}
		}
	}
}

func TestControllersOfTheUnifiedHierarchy(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"the machine's root gives all that it has": {
			map[string]string{"cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": "memory\n", "cgroup.procs": "1\n"},
			[]string{"cpu", "memory", "pids"},
		},
		"a container's root has processes": {
			map[string]string{"cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": "memory\n", "cgroup.procs": "1\n", "cgroup.type": "domain\n"},
			[]string{"memory"},
		},
		"a container's root whose processes were moved": {
			map[string]string{"cgroup.controllers": "cpu memory\n", "cgroup.subtree_control": "", "cgroup.procs": "", "cgroup.type": "domain\n"},
			[]string{"cpu", "memory"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, unifiedControllers(root)); diff != "" {
				t.Errorf("controllers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFirstProcessKnowsWhereItIs(t *testing.T) {
	if err := first(Place{}); err == nil || !strings.Contains(err.Error(), "not the first process") {
		t.Errorf("error %v, want one that says that this is no namespace of its own", err)
	}
}

// TestSocketsHaveRoomInTheDirectory, and the node sees it.
func TestSocketsHaveRoomInTheDirectory(t *testing.T) {
	lab := t.TempDir()
	long := filepath.Join(lab, strings.Repeat("long/", 10))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	id, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := NewDir(long, "node-1", id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if want := filepath.Join(shortDir, id); dir != want {
		t.Errorf("directory %s, want %s", dir, want)
	}
	const socket, most = "/lib/kubelet/plugins/a-long-name.gpus.example.com/dra.sock", 107
	if longest := max(len(dir), longestDir) + len(socket); longest > most {
		t.Errorf("the name of a socket can have %d bytes, want at most %d", longest, most)
	}
	for path, want := range map[string]bool{
		"/run": true, "/run/lab": true, "/var/lib/jenkins/lab": true, "/var/log/x": true, "/runner/lab": false, "/tmp/lab": false,
	} {
		if Hides(path) != want {
			t.Errorf("Hides(%s) is %t", path, !want)
		}
	}
}
