package publish

import (
	"errors"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestFence: older never replaces newer, and nothing that was made up blocks.
func TestFence(t *testing.T) {
	for _, tc := range []struct {
		published, observed string
		behind              bool
	}{
		{"pods@10 nodes@20", "pods@10 nodes@20", false},
		{"pods@10 nodes@20", "pods@11 nodes@30", false},
		{"pods@10 nodes@20", "pods@9 nodes@30", true},
		{"pods@10 nodes@20", "pods@11 nodes@19", true},
		{"pods@9", "pods@10", false},
		{"pods@100", "pods@99", true}, // the object's own version
		{"pods@101", "pods@99", false},
		{"pods@99999999999999999999999", "pods@99", false},
		{"pods@10 claims@50", "pods@10 nodes@5", false},
		{"", "pods@1", false},
		{"pods@", "pods@1", false},
		{"pods@-5", "pods@1", false},
		{"rubbish @ @@ pods@x nodes@0x10", "pods@1 nodes@1", false},
		{"pods@10", "pods@", false},
	} {
		cm := &corev1.ConfigMap{}
		cm.ResourceVersion, cm.Annotations = "100", map[string]string{AnnotationObserved: tc.published}
		if err := fence(cm, tc.observed); errors.Is(err, ErrBehind) != tc.behind {
			t.Errorf("published from %q, seen %q: %v", tc.published, tc.observed, err)
		}
	}
	if err := fence(nil, "pods@1"); err != nil {
		t.Errorf("without an object: %v", err)
	}
}

// TestBehindWritesNothing, not even a shard; and to be behind with nothing to write
// is no error.
func TestBehindWritesNothing(t *testing.T) {
	for _, nodes := range []int{3, 100} {
		b := newBench(t, both)
		b.publish(cluster(nodes))
		b.cache.sync()
		b.server.writes = nil
		old := b.snap(cluster(nodes))
		old.Observed.Pods, old.Complete = strconv.Itoa(b.seen-1_000), count.Observed{}
		if _, err := b.Publish(t.Context(), old); err != nil {
			t.Errorf("nothing to write: %v", err)
		}
		old = b.snap(cluster(nodes + 1))
		old.Observed.Pods, old.Complete = strconv.Itoa(900), count.Observed{}
		if _, err := b.Publish(t.Context(), old); !errors.Is(err, ErrBehind) {
			t.Errorf("an old observation: %v", err)
		}
		if len(b.server.writes) > 0 {
			t.Errorf("%q were written", b.server.writes)
		}
		b.shows(cluster(nodes))

		// Nothing has changed since 900, and it is known up to now: that is not behind.
		old.Complete.Pods = strconv.Itoa(b.seen)
		if _, err := b.Publish(t.Context(), old); err != nil || len(b.server.writes) == 0 {
			t.Errorf("complete, but without a change for long: %v, %d writes", err, len(b.server.writes))
		}
	}
}

// TestTerm: a term is what a Lease can hold.
func TestTerm(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "1": 1, "2147483646": 2147483646, "2147483647": 0, "2147483648": 0, "-1": 0, "99999999999999999999": 0, "x": 0, "1x": 0,
	} {
		cm := &corev1.ConfigMap{}
		cm.Annotations = map[string]string{AnnotationTerm: text}
		if got := Term(cm); got != want {
			t.Errorf("%q is term %d, want %d", text, got, want)
		}
	}
	if Term(nil) != 0 {
		t.Error("nothing has a term")
	}
}

// TestALaterTermIsNeverWrittenOver: the first thing that a leader does is to write
// its term. From then on an earlier one writes and deletes nothing, be its view as new
// as it may. Without election terms mean nothing and are removed.
func TestALaterTermIsNeverWrittenOver(t *testing.T) {
	for _, nodes := range []int{3, 100} {
		first, second := both, both
		first.Term, second.Term = 4, 5
		b := newBench(t, first)
		b.publish(cluster(nodes))
		old := b.Publisher
		b.restart(second)
		if writes := b.writes(cluster(nodes)); len(writes) != 2 {
			t.Errorf("%d nodes: the new leader wrote %q, want both base objects", nodes, writes)
		}
		if writes := b.writes(cluster(nodes)); len(writes) != 0 {
			t.Errorf("%d nodes: and once more %q", nodes, writes)
		}
		b.cache.sync()
		b.server.writes = nil
		for _, n := range []int{nodes, nodes + 50, 1} {
			if _, err := old.Publish(t.Context(), b.snap(cluster(n))); !errors.Is(err, ErrFenced) {
				t.Errorf("%d nodes: the old leader, with %d nodes: %v", nodes, n, err)
			}
		}
		if len(b.server.writes) != 0 {
			t.Errorf("%d nodes: the old leader wrote %q", nodes, b.server.writes)
		}
		b.shows(cluster(nodes))
		b.restart(both)
		if b.publish(cluster(nodes + 1)); Term(b.server.objects["gpu-summary"]) != 0 {
			t.Error("a term is left, though nobody elects")
		}
	}
}
