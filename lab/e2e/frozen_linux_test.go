package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/lab/realnode"
)

// TestFrozenNode: everything on the leader's node stands still, kubelet and containers,
// as when a machine hangs. The replica on another node takes over when the lease has
// expired and says what has become of the node. The first, when it wakes up, writes
// nothing and ends.
func TestFrozenNode(t *testing.T) {
	e := newEnv(t)
	e.played(playedNode, 64) // for what has to happen meanwhile
	other := e.join()
	e.apart(other)
	leader, err := e.site.leader(t.Context())
	e.must(err)
	if leader.Spec.NodeName != e.node.Name() {
		t.Fatalf("the leader is %s on %s", leader.Name, leader.Spec.NodeName)
	}
	e.running(on(e.node, holder("a", 2)))
	e.running(on(other, holder("b", 3)))
	e.create(bound("one", playedNode, 1))
	e.row(playedNode, 1)
	e.row(other.Name(), 3)
	e.settled(2)
	before, restarts, held := len(e.writes()), e.restarts(), e.holders()

	thaw := e.freeze(e.node)
	frozen := metav1.NowMicro()
	step("node %s stands still", e.node.Name())
	e.create(bound("two", playedNode, 2))
	e.row(playedNode, 3)
	successor, err := e.site.leader(t.Context())
	e.must(err)
	if successor.Name == leader.Name || successor.Spec.NodeName != other.Name() {
		t.Errorf("%s on %s leads, although it is frozen", successor.Name, successor.Spec.NodeName)
	}
	step("%s has taken over", successor.Name)
	e.expired(held(), leader, successor)
	e.notReady(e.node, true)
	e.row(e.node.Name(), 2) // for nobody knows that they have ended
	step("node %s is not ready", e.node.Name())

	thaw()
	e.eventually("the first to find out, to end and to be back", func() error {
		if now := e.restarts(); now[leader.Name] != restarts[leader.Name]+1 {
			return fmt.Errorf("%s was restarted %d times", leader.Name, now[leader.Name]-restarts[leader.Name])
		}
		return e.site.working(t.Context(), 2)
	})
	e.notReady(e.node, false)
	step("%s is back", leader.Name)
	e.endedAsFenced(leader)
	e.create(bound("three", playedNode, 4))
	e.row(playedNode, 7)
	e.row(other.Name(), 3)
	e.settled(2)
	writes := e.writes()[before:]
	if _, writers := e.oneWriterAtATime(writes); writers < 1 {
		t.Error("nobody wrote")
	}
	for _, w := range writes {
		if w.pod == leader.Name && w.began.After(frozen.Time) {
			t.Errorf("%s wrote at %v, after it had been frozen", w.pod, w.began)
		}
	}
}

// apart puts the replica that does not lead on another node.
func (e *env) apart(other *realnode.Node) {
	e.Helper()
	leader, err := e.site.leader(e.Context())
	e.must(err)
	e.cordon(e.node, true)
	e.cordon(other, false)
	for _, p := range e.site.pods(e.Context()) {
		if p.Name != leader.Name {
			e.must(e.client.CoreV1().Pods(p.Namespace).Delete(e.Context(), p.Name, metav1.DeleteOptions{}))
		}
	}
	e.eventually("a replica on each node", func() error {
		on := map[string]int{}
		for _, p := range e.site.pods(e.Context()) {
			on[p.Spec.NodeName]++
		}
		if on[e.node.Name()] != 1 || on[other.Name()] != 1 {
			return fmt.Errorf("they are on %v", on)
		}
		return e.site.working(e.Context(), 2)
	})
	e.cordon(e.node, false)
}

// freeze lets a node stand still until the function is called, which may be more than
// once, or the test ends.
func (e *env) freeze(node *realnode.Node) (thaw func()) {
	e.Helper()
	thaw = func() { e.must(node.Thaw()) }
	e.Cleanup(thaw)
	e.must(node.Freeze(e.Context()))
	return thaw
}

// expired checks that the successor has waited until the leader's lease had expired.
func (e *env) expired(held []lease, leader, successor *corev1.Pod) {
	e.Helper()
	for i := 1; i < len(held); i++ {
		from, to := held[i-1], held[i]
		if !strings.HasPrefix(from.holder, leader.Name) || !strings.HasPrefix(to.holder, successor.Name) {
			continue
		}
		waited := to.acquired.Sub(from.renewed)
		e.Logf("the lease was taken %s after it had been renewed", waited)
		if limit := e.leaseDuration(); waited < limit {
			e.Errorf("%s took the lease %s after it had been renewed, which is before it expired after %s", successor.Name, waited, limit)
		}
		return
	}
	e.Errorf("%s did not take the lease from %s: %v", successor.Name, leader.Name, held)
}

// notReady waits until the API server and the ConfigMap agree on whether a node is.
func (e *env) notReady(node *realnode.Node, want bool) {
	e.Helper()
	e.eventually(fmt.Sprintf("node %s not to be ready: %t", node.Name(), want), func() error {
		object, err := e.client.CoreV1().Nodes().Get(e.Context(), node.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		cm, err := e.client.CoreV1().ConfigMaps(e.site.namespace).Get(e.Context(), capacityConfigMap, metav1.GetOptions{})
		if err != nil {
			return err
		}
		rows, err := rowsIn(cm, node.Name())
		if err != nil {
			return err
		}
		for _, c := range object.Status.Conditions {
			if c.Type == corev1.NodeReady && (c.Status != corev1.ConditionTrue) != want {
				return fmt.Errorf("it is %s: %s", c.Status, c.Message)
			}
		}
		if len(rows) != 1 || slices.Contains(rows[0].States, count.NotReady) != want {
			return fmt.Errorf("its rows are %+v", rows)
		}
		return nil
	})
}

// endedAsFenced: a replica that has found another leader ends with an error.
func (e *env) endedAsFenced(replica *corev1.Pod) {
	e.Helper()
	pod, err := e.client.CoreV1().Pods(replica.Namespace).Get(e.Context(), replica.Name, metav1.GetOptions{})
	e.must(err)
	last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated
	if last == nil || last.ExitCode != 1 {
		e.Errorf("%s had ended with %+v, want exit status 1", pod.Name, last)
		return
	}
	lines := strings.Split(strings.TrimSpace(last.Message), "\n")
	e.Logf("%s ended with: %s", pod.Name, lines[len(lines)-1])
}
