package publish

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestASmallClusterIsOneObjectEach, laid out as it has always been.
func TestASmallClusterIsOneObjectEach(t *testing.T) {
	b := newBench(t, Options{Namespace: "ns", Name: "gpu-summary", Resources: []string{"amd.com/gpu"}, CapacityName: "gpu-capacity"})
	if got, want := b.writes(cluster(3)), []string{"gpu-summary", "gpu-summary.amd.com.gpu", "gpu-capacity"}; !slices.Equal(got, want) {
		t.Errorf("writes are %q, want %q", got, want)
	}
	cm := b.server.objects["gpu-summary"]
	if want := map[string]string{"gpu-node-00000": "0", "gpu-node-00001": "1", "gpu-node-00002": "2"}; !maps.Equal(cm.Data, want) {
		t.Errorf("data is %v", cm.Data)
	}
	if cm.Annotations[AnnotationShards] != "" || cm.Annotations[AnnotationRequested] != "3" {
		t.Errorf("annotations are %v", cm.Annotations)
	}
	if cm := b.server.objects["gpu-summary.amd.com.gpu"]; len(cm.Data) != 0 || cm.Annotations[AnnotationResource] != "amd.com/gpu" {
		t.Errorf("of a resource that is not there it says %v, %v", cm.Data, cm.Annotations)
	}
	if got := b.writes(cluster(3)); len(got) > 0 {
		t.Errorf("nothing changed and %q were written", got)
	}
	b.shows(cluster(3))
}

// TestOnlyDirtyShardsAreWritten: a change of one node writes its shard and the base,
// in this order, and not much more than the shard in bytes.
func TestOnlyDirtyShardsAreWritten(t *testing.T) {
	b := newBench(t, Options{Namespace: "ns", Name: "gpu-summary", CapacityName: "gpu-capacity", MaxObjectBytes: 20_000})
	requested := cluster(2000)
	if n := len(b.writes(requested)); n < 30 {
		t.Fatalf("2000 nodes are %d objects: there is nothing to see here", n)
	}
	for range 20 {
		node := names(2000)[seeded(t).IntN(2000)]
		requested[node] = (requested[node] + 1) % 9
		b.server.bytes = 0
		writes := b.writes(requested)
		if len(writes) != 4 || !strings.Contains(writes[0], "gpu-summary-shard-") || writes[1] != "gpu-summary" ||
			!strings.Contains(writes[2], "gpu-capacity-shard-") || writes[3] != "gpu-capacity" {
			t.Errorf("a change of %s wrote %q", node, writes)
			continue
		}
		shards := weigh(b.server.objects[writes[0]].Data) + weigh(b.server.objects[writes[2]].Data)
		if b.server.bytes > 2*shards {
			t.Errorf("a change of %s wrote %d bytes, its shards have %d", node, b.server.bytes, shards)
		}
	}
	b.shows(requested)
}

// TestItGrowsAndShrinksBack to the very objects that it began with.
func TestItGrowsAndShrinksBack(t *testing.T) {
	b := newBench(t, both)
	b.publish(cluster(5))
	plain := *b.server.objects["gpu-summary"]
	most := 0
	for _, nodes := range []int{40, 100, 300, 150, 30, 5} {
		b.publish(cluster(nodes))
		b.shows(cluster(nodes))
		most = max(most, len(b.server.objects))
	}
	if most < 20 {
		t.Errorf("there were never more than %d objects", most)
	}
	if len(b.server.objects) != 2 {
		t.Errorf("%q are left", slices.Sorted(maps.Keys(b.server.objects)))
	}
	now := *b.server.objects["gpu-summary"]
	now.ResourceVersion, now.Annotations[AnnotationObserved] = plain.ResourceVersion, plain.Annotations[AnnotationObserved]
	if !maps.Equal(now.Data, plain.Data) || !maps.Equal(now.Annotations, plain.Annotations) {
		t.Errorf("it began as %v\nand ends as %v", plain, now)
	}
}

// TestWhatWeDidIsKnownBeforeTheCacheHearsOfIt: a change right after a write, and
// after a delete, meets no conflict.
func TestWhatWeDidIsKnownBeforeTheCacheHearsOfIt(t *testing.T) {
	b := newBench(t, both)
	for _, nodes := range []int{100, 101, 100, 5, 100, 5, 1, 200} {
		for range 2 {
			if _, err := b.Publish(t.Context(), b.snap(cluster(nodes))); err != nil {
				t.Fatalf("%d nodes: %v", nodes, err)
			}
		}
		if nodes == 100 {
			b.cache.sync() // from here on it knows objects that come and go
		}
		b.shows(cluster(nodes))
	}
	b.server.writes = nil
	if _, err := b.Publish(t.Context(), b.snap(cluster(200))); err != nil || len(b.server.writes) > 0 {
		t.Errorf("nothing changed: %v, writes %q", err, b.server.writes)
	}
}

// TestTooLargeIsSaid: what cannot be divided and does not fit is an error with a
// name, a size and a way out. Everything else is published all the same.
func TestTooLargeIsSaid(t *testing.T) {
	b := newBench(t, Options{Namespace: "ns", Name: "gpu-summary", CapacityName: "gpu-capacity"})
	snap := b.snap(cluster(2))
	for i := range 25_000 {
		snap.Summaries[0].Namespaces = append(snap.Summaries[0].Namespaces, count.Share{Name: fmt.Sprint("namespace-", i)})
	}
	result, err := b.Publish(t.Context(), snap)
	if !errors.Is(err, ErrTooLarge) {
		t.Fatalf("the error is %v", err)
	}
	for _, said := range []string{"ns/gpu-capacity", "in summary.json", "takes 1048576", "--capacity-name"} {
		if !strings.Contains(err.Error(), said) {
			t.Errorf("the error does not say %q: %v", said, err)
		}
	}
	if len(result.Writes) == 0 || result.Writes[0].Name != "gpu-summary" || b.server.objects["gpu-capacity"] != nil {
		t.Errorf("written was %v", result)
	}
}

// TestWhyItWasWritten names the reason in each case.
func TestWhyItWasWritten(t *testing.T) {
	b := newBench(t, both)
	requested := cluster(3)
	expect := func(what string, want ...Reason) {
		t.Helper()
		if got := b.publish(requested).Reasons(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	expect("the first", Missing)
	requested["gpu-node-00000"]++
	expect("a change", Changed)
	b.server.edit(t, "gpu-summary", func(cm *corev1.ConfigMap) { cm.Annotations["example.com/note"] = "hi" })
	expect("a note by somebody else")
	requested["gpu-node-00000"]++
	expect("a change after the note", Changed)
	b.server.edit(t, "gpu-summary", func(cm *corev1.ConfigMap) { cm.Data["gpu-node-00000"] = "9" })
	expect("an edit", Edited)
	b.server.edit(t, "gpu-capacity", func(cm *corev1.ConfigMap) { cm.Labels = nil })
	expect("no labels", Edited)
	b.server.put("gpu-summary", nil)
	expect("deleted", Vanished)
	b.restart(both)
	expect("a restart")
	b.restart(both)
	requested["gpu-node-00000"]++
	expect("a restart after a change", Outdated)
}

// TestAnObjectWithoutOurLabelsIsAdopted: the first try meets it, the second reads
// it, and what others wrote on it stays.
func TestAnObjectWithoutOurLabelsIsAdopted(t *testing.T) {
	b := newBench(t, both)
	foreign := configMapWith(map[string]string{"README": "hello"})
	foreign.Name, foreign.UID, foreign.Labels = "gpu-summary", "u", map[string]string{"app": "x"}
	b.server.put("gpu-summary", foreign)
	b.cache.sync()
	if _, err := b.Publish(t.Context(), b.snap(cluster(3))); err == nil || !strings.Contains(err.Error(), "the next try reads it") {
		t.Fatalf("the first try gave %v", err)
	}
	if got := b.writes(cluster(3)); !slices.Equal(got, []string{"gpu-summary"}) {
		t.Errorf("the second wrote %q", got)
	}
	b.shows(cluster(3))
	if cm := b.server.objects["gpu-summary"]; cm.Labels["app"] != "x" || cm.Labels[LabelInstance] != "gpu-summary" {
		t.Errorf("labels are %v", cm.Labels)
	}
}

// TestControllersLeaveEachOtherAlone: with a name of its own each has its objects,
// and none takes over what another keeps.
func TestControllersLeaveEachOtherAlone(t *testing.T) {
	b := newBench(t, both)
	b.publish(cluster(100))
	before := maps.Clone(b.server.objects)
	other := New(b.server, Options{Namespace: "ns", Name: "other", CapacityName: "gpu-capacity"}, &watched{server: b.server})
	for range 3 {
		_, err := other.Publish(t.Context(), b.snap(cluster(2)))
		if err == nil {
			t.Fatal("two controllers have one ConfigMap")
		}
		if i := len(b.server.writes); i > 500 {
			t.Fatal("it loops")
		}
	}
	_, err := other.Publish(t.Context(), b.snap(cluster(2)))
	if want := "belongs to the controller with --name=gpu-summary"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
	for name, cm := range before {
		if now := b.server.objects[name]; now == nil || now.ResourceVersion != cm.ResourceVersion {
			t.Errorf("%s was written or deleted by the other", name)
		}
	}
	if b.server.objects["other"] == nil {
		t.Error("its own was not written")
	}
}

// TestWhatEarlierFlagsAskedForGoes; what somebody else made stays.
func TestWhatEarlierFlagsAskedForGoes(t *testing.T) {
	b := newBench(t, Options{Namespace: "ns", Name: "gpu-summary", Resources: []string{"amd.com/gpu"}, CapacityName: "capacity", MaxObjectBytes: small})
	b.publish(cluster(100))
	backup := b.server.objects["gpu-summary"].DeepCopy()
	backup.Name, backup.UID = "backup", "b"
	b.server.put("backup", backup)
	b.restart(Options{Namespace: "ns", Name: "gpu-summary", MaxObjectBytes: 1 << 20})
	b.publish(cluster(100))
	if got := slices.Sorted(maps.Keys(b.server.objects)); !slices.Equal(got, []string{"backup", "gpu-summary"}) {
		t.Errorf("%q are left", got)
	}
}
