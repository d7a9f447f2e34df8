package plane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
	"github.com/gpu-summary/gpu-summary-controller/lab/testkit"
)

func TestKilledParentLeavesNoOrphan(t *testing.T) {
	labPlane(t)
	// A directory for the helper's temporary ones, so that they can be counted.
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	report, kill := testkit.Helper[helperReport](t, helperEnv+"="+"plane")
	if len(report.Pids) != 5 {
		t.Fatalf("the helper reports %d components, want 5: %v", len(report.Pids), report.Pids)
	}
	kill()
	testkit.Eventually(t, "the helper's components to end", func(context.Context) error { return gone(report.Pids) })

	// Nobody was left to remove the directory; the next start does.
	if !exists(report.Dir) {
		t.Fatalf("state directory %s is gone: the helper was not killed", report.Dir)
	}
	p, err := plane.Start(t.Context(), plane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if exists(report.Dir) {
		t.Errorf("leftover state directory %s not swept", report.Dir)
	}
	if !exists(p.Dir()) {
		t.Error("the sweep took a living plane's directory")
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
}

func TestChildThatIgnoresItsTetherDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a parent death signal")
	}
	report, kill := testkit.Helper[helperReport](t, helperEnv+"="+"untethered")
	t.Cleanup(func() { _ = syscall.Kill(report.Pids["sleep"], syscall.SIGKILL) })
	if err := gone(report.Pids); err == nil {
		t.Fatal("the child is not there while its parent is")
	}
	kill()
	testkit.Eventually(t, "the child to end", func(context.Context) error { return gone(report.Pids) })
}

// helperReport is what the helper tells about itself on its standard output.
type helperReport struct {
	Dir  string
	Pids map[string]int
}

func helper() {
	p, err := plane.Start(context.Background(), plane.Options{})
	if err == nil {
		// A stopped process does not read the end of its tether.
		err = p.Component(plane.Scheduler).Pause()
	}
	if err != nil {
		helperFailed(err)
	}
	awaitDeath(helperReport{Dir: p.Dir(), Pids: pidsOf(p)})
}

func untetheredHelper() {
	pid, err := plane.SpawnForTest(exec.Command("sleep", "600"))
	if err != nil {
		helperFailed(err)
	}
	awaitDeath(helperReport{Pids: map[string]int{"sleep": pid}})
}

func helperFailed(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func awaitDeath(report helperReport) {
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		helperFailed(err)
	}
	select {}
}

// alive reports whether the process runs (a zombie does not).
func alive(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return !isZombie(string(stat))
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func gone(pids map[string]int) error {
	for name, pid := range pids {
		if alive(pid) {
			return fmt.Errorf("%s (process %d) is there", name, pid)
		}
	}
	return nil
}

// isZombie reads the state in a line of /proc/PID/stat, which follows the
// command's name in parentheses.
func isZombie(stat string) bool {
	_, rest, _ := strings.Cut(stat, ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}
