package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const playedNode = "played"

// TestRollingUpdate of the controller while pods come and go: somebody always publishes,
// and never two.
func TestRollingUpdate(t *testing.T) {
	e := newEnv(t)
	e.played(playedNode, 64)
	e.running(holder("a", 2))
	stop := e.load()
	e.eventually("the load to be published", func() error {
		cm, err := e.site.configMap(t.Context())
		if err == nil && (cm.Data[playedNode] == "" || cm.Data[playedNode] == "0") {
			err = fmt.Errorf("row %q", cm.Data[playedNode])
		}
		return err
	})
	before := len(e.writes())
	holders := e.holders()
	old := map[string]bool{}
	for _, p := range e.site.pods(t.Context()) {
		old[p.Name] = true
	}
	_, err := e.site.helm(t.Context(), "upgrade", e.site.values("podAnnotations: {updated: for-"+e.namespace+"}\n"))
	e.must(err)
	e.eventually("the new replicas to be at work", func() error {
		for _, p := range e.site.pods(t.Context()) {
			if old[p.Name] {
				return fmt.Errorf("%s is still there", p.Name)
			}
		}
		return e.site.working(t.Context(), 2)
	})
	stop()
	e.settled(2)
	e.row(playedNode, 0)
	gap, writers := e.oneWriterAtATime(e.writes()[before:])
	t.Logf("%d replicas wrote, with %s at most between two writes", writers, gap.Round(time.Millisecond))
	if limit := e.leaseDuration(); gap >= limit {
		t.Errorf("nothing was written for %s, as if a leader had died whose lease is of %s", gap, limit)
	}
	if writers < 2 {
		t.Error("the leader was not replaced")
	}
	held := holders()
	for i := 1; i < len(held); i++ {
		if held[i-1] != "" && held[i] != "" {
			t.Errorf("%s took the lease when it had expired: %s did not give it back", held[i], held[i-1])
		}
	}
}

// holders watches who holds the lease. The function it returns ends that, and returns
// them in their order, "" for nobody.
func (e *env) holders() func() []string {
	e.Helper()
	leases := e.client.CoordinationV1().Leases(e.site.namespace)
	lease, err := leases.Get(e.Context(), e.site.controller(), metav1.GetOptions{})
	e.must(err)
	held := []string{*lease.Spec.HolderIdentity}
	watch, err := leases.Watch(e.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + lease.Name, ResourceVersion: lease.ResourceVersion})
	e.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			lease, ok := event.Object.(*coordinationv1.Lease)
			if ok && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != held[len(held)-1] {
				held = append(held, *lease.Spec.HolderIdentity)
			}
		}
	}()
	return func() []string { watch.Stop(); <-done; return held }
}

// load lets pods come and go on the played node until stop is called, and then removes
// the last.
func (e *env) load() (stop func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(e.Context())
	now := int64(0)
	pods := e.client.CoreV1().Pods(e.namespace)
	remove := func(name string) {
		if err := pods.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			e.Errorf("load: %v", err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		last := ""
		for i := 0; ctx.Err() == nil; i++ {
			name := fmt.Sprintf("load-%d", i)
			// Another number each time, so that each is a reason to write.
			if _, err := pods.Create(context.WithoutCancel(ctx), bound(name, playedNode, 1+i%7), metav1.CreateOptions{}); err != nil {
				e.Errorf("load: %v", err)
				return
			}
			if last != "" {
				remove(last)
			}
			last = name
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		remove(last)
	})
	return func() { cancel(); wg.Wait() }
}

// TestDrain of the only node that has containers: one replica goes, and since it finds
// no other place, the chart's disruption budget keeps the second, which goes on. When
// pods may come again there are two.
func TestDrain(t *testing.T) {
	e := newEnv(t)
	e.running(holder("a", 2))
	e.settled(2)
	name := e.node.Name()
	t.Cleanup(func() {
		if _, err := kubectl(context.Background(), "uncordon", name); err != nil {
			t.Error(err)
		}
	})
	_, err := kubectl(t.Context(), "drain", name, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--grace-period=5", "--timeout=20s")
	if err == nil || !strings.Contains(err.Error(), "would violate the pod's disruption budget") {
		t.Errorf("kubectl drain ended with: %v", err)
	}
	e.settled(0) // by the replica that stayed
	staying := 0
	for _, p := range e.site.pods(t.Context()) {
		if p.Spec.NodeName != "" {
			staying++
		}
	}
	if staying != 1 {
		t.Errorf("%d replicas stayed, want 1", staying)
	}
	_, err = kubectl(t.Context(), "uncordon", name)
	e.must(err)
	e.eventually("two replicas", func() error { return e.site.working(t.Context(), 2) })
	e.running(holder("b", 3))
	e.settled(3)
}

// TestFrozenLeader: its processes and the kubelet stand still, as when a machine hangs.
// The other replica takes over, and when the first wakes up it writes nothing. (Both are
// on the one node that has containers, so what stands still is the leader's and not the
// node's.)
func TestFrozenLeader(t *testing.T) {
	e := newEnv(t)
	e.played(playedNode, 64)
	e.running(holder("a", 2))
	e.create(bound("one", playedNode, 1))
	e.row(playedNode, 1)
	e.settled(2)
	before, restarts := len(e.writes()), e.restarts()
	leader, err := e.site.leader(t.Context())
	e.must(err)
	resume := e.freeze(leader)
	defer resume()
	step("the leader stands still")
	e.create(bound("two", playedNode, 2))
	e.row(playedNode, 3)
	successor, err := e.site.leader(t.Context())
	e.must(err)
	if successor.Name == leader.Name {
		t.Errorf("%s still leads, although it is frozen", leader.Name)
	}
	step("%s has taken over", successor.Name)
	resume()
	e.eventually("the first to find out, to end and to be back", func() error {
		if now := e.restarts(); now[leader.Name] <= restarts[leader.Name] {
			return fmt.Errorf("%s was not restarted", leader.Name)
		}
		return e.site.working(t.Context(), 2)
	})
	step("%s is back", leader.Name)
	e.create(bound("three", playedNode, 4))
	e.row(playedNode, 7)
	e.settled(2)
	if _, writers := e.oneWriterAtATime(e.writes()[before:]); writers < 1 {
		t.Error("nobody wrote")
	}
	for _, w := range e.writes()[before:] {
		if w.pod == leader.Name {
			t.Errorf("%s wrote at %v, after it had been frozen", w.pod, w.began)
		}
	}
}

// freeze stops the kubelet and a pod's processes where they are. resume may be called
// more than once. (Not with containerd's pause: in the older hierarchy of control groups
// nothing that is frozen can be killed, should the lab end meanwhile.)
func (e *env) freeze(pod *corev1.Pod) (resume func()) {
	e.Helper()
	id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
	processes := e.processes(id)
	e.must(e.node.Kubelet().Pause())
	resume = sync.OnceFunc(func() {
		for _, pid := range processes {
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
				e.Errorf("let process %d go on: %v", pid, err)
			}
		}
		if err := e.node.Kubelet().Resume(); err != nil {
			e.Error(err)
		}
	})
	for _, pid := range processes {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			resume()
			e.Fatalf("stop process %d: %v", pid, err)
		}
	}
	return resume
}

// processes are those of a container, which has control groups of its own.
func (e *env) processes(container string) (pids []int) {
	e.Helper()
	entries, err := os.ReadDir("/proc")
	e.must(err)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		groups, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cgroup"))
		if err == nil && strings.Contains(string(groups), container) {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		e.Fatalf("container %s has no processes", container)
	}
	return pids
}
