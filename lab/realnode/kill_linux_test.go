package realnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
	"github.com/gpu-summary/gpu-summary-controller/lab/testkit"
)

// TestKilledLabLeavesNothing of any of its nodes: neither processes, of which containers
// and their shims are nobody's children, nor namespaces, mounts, control groups or files.
// The node of another lab, which runs meanwhile and has an address of theirs, goes on.
func TestKilledLabLeavesNothing(t *testing.T) {
	labNode(t)
	report, kill := testkit.Helper[helperReport](t, helperEnv+"="+t.TempDir())
	if len(report) != 2 || report[0].Network == report[1].Network || report[0].Dir == report[1].Dir {
		t.Fatalf("the helper's nodes are %+v, want two that share nothing", report)
	}
	var inGroups []string
	for _, node := range report {
		inGroups = append(inGroups, node.isThere(t)...)
	}
	kill()
	for _, node := range report {
		testkit.Eventually(t, "the node to be gone", func(context.Context) error { return node.isGone(t) })
	}
	for _, pid := range inGroups {
		if exists("/proc/" + pid) {
			t.Errorf("process %s of one of its containers is left", pid)
		}
	}
	ns := namespace(t)
	run(t, ns, pod("after", "hello"), corev1.PodSucceeded)
	if got := logOf(t, ns, "after"); got != "hello from after" {
		t.Errorf("the other lab's pod says %q", got)
	}
}

// isThere checks that there is what isGone will look for, and returns the processes of
// containers.
func (h helperNode) isThere(t *testing.T) []string {
	t.Helper()
	inside := inNamespace(t, "pid", h.Namespace)
	for _, want := range []string{"kubelet", "containerd", "containerd-shim"} {
		if !slices.ContainsFunc(inside, func(name string) bool { return strings.HasPrefix(name, want) }) {
			t.Errorf("no %s among the node's processes: %q", want, inside)
		}
	}
	if found := groupsOf(t, h.Group); len(found) == 0 || !exists(h.Dir) {
		t.Fatalf("control groups %q and directory %s of a running node", found, h.Dir)
	}
	// Containers have namespaces of their own.
	inGroups := processesIn(t, h.Group)
	if len(inGroups) < 2 {
		t.Errorf("processes of containers: %q, want the pod's and the one that holds its namespaces", inGroups)
	}
	if mounts := readFile(t, "/proc/self/mountinfo"); strings.Contains(mounts, h.Dir) {
		t.Errorf("what is mounted in the node is outside as well:\n%s", mounts)
	}
	return inGroups
}

func (h helperNode) isGone(t *testing.T) error {
	t.Helper()
	for kind, namespace := range map[string]string{"pid": h.Namespace, "net": h.Network} {
		if left := inNamespace(t, kind, namespace); len(left) > 0 {
			return fmt.Errorf("processes in its %s namespace: %q", kind, left)
		}
	}
	if left := groupsOf(t, h.Group); len(left) > 0 {
		return fmt.Errorf("its control groups are there: %q", left)
	}
	if exists(h.Dir) {
		return fmt.Errorf("its directory %s is there", h.Dir)
	}
	return nil
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestStopLeavesNothing, twice, and with a kubelet that hangs.
func TestStopLeavesNothing(t *testing.T) {
	labNode(t)
	p := planeForNode(t)
	n, err := Start(t.Context(), Options{Plane: p, Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	group, dir := n.place.ID, n.place.Dir
	first, err := n.place.First()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Kubelet().Pause(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(n.Stop(), n.Stop()); err != nil {
		t.Error(err)
	}
	if left := groupsOf(t, group); len(left) > 0 || exists(dir) || exists(fmt.Sprintf("/proc/%d", first)) {
		t.Errorf("left: control groups %q, directory %t, first process %t", left, exists(dir), exists(fmt.Sprintf("/proc/%d", first)))
	}
	for _, c := range p.Components() {
		if strings.HasSuffix(c.Name(), "-other") {
			t.Errorf("%s is still a component of the plane", c.Name())
		}
	}
}

// TestKilledKeeperTakesTheNodeWithIt, the plane says so, and Stop clears up instead.
func TestKilledKeeperTakesTheNodeWithIt(t *testing.T) {
	labNode(t)
	p := planeForNode(t)
	// Not the first on this plane: what an earlier one was called is free.
	for range 2 {
		n, err := Start(t.Context(), Options{Plane: p})
		if err != nil {
			t.Fatal(err)
		}
		first, err := n.place.First()
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(n.component(Keeper).Pid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-p.Failed():
			var exit *plane.ExitError
			if !errors.As(err, &exit) {
				t.Errorf("the plane reports %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the plane reports nothing within a minute")
		}
		testkit.Eventually(t, "the node's first process to end", func(context.Context) error {
			if exists(fmt.Sprintf("/proc/%d", first)) {
				return errors.New("it is there")
			}
			return nil
		})
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
		if left := groupsOf(t, n.place.ID); len(left) > 0 || exists(n.place.Dir) {
			t.Errorf("left: control groups %q, directory %t", left, exists(n.place.Dir))
		}
	}
}

func planeForNode(t *testing.T) *plane.Plane {
	t.Helper()
	p, err := plane.Start(t.Context(), plane.Options{RealNode: true, Without: []string{plane.KWOK, plane.Scheduler}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}
