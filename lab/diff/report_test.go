package diff

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestAFindingSaysHowToSeeItAgain: number, sub-seed, both numbers and a pod to try.
func TestAFindingSaysHowToSeeItAgain(t *testing.T) {
	report := run(t, Options{Pods: 500, Counter: planted["R2 a pod being deleted is gone"]})
	var out strings.Builder
	if err := report.Write(&out, Table); err != nil {
		t.Fatal(err)
	}
	f := report.Found[0]
	for _, want := range []string{
		"Mismatch 1: ", f.Resource + " on ", "the scheduler says 1, we say 0",
		f.From[0].SubSeed, "lab diff --seed 1 --only ", "kind: Pod", "deletionTimestamp: ", "500 pods tried", "mismatches",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if whole := Pod(seed, f.From[0].Number); whole.DeletionTimestamp == nil || whole.Name != f.Pods[0].Name {
		t.Errorf("%+v is not where %s comes from", f.From[0], f.Pods[0].Name)
	}
}

func TestReportAsJSON(t *testing.T) {
	report := run(t, Options{Pods: 200, Counter: planted["R1 the phase is not looked at"]})
	var out strings.Builder
	if err := report.Write(&out, JSON); err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Pods != 200 || got.Mismatches != report.Mismatches || len(got.Found) == 0 || got.Found[0].Key != report.Found[0].Key {
		t.Errorf("read back: %+v", got)
	}
}

func TestShow(t *testing.T) {
	var out strings.Builder
	if err := Show(&out, seed, 7); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pod 7 of seed 1, sub-seed " + hex(SubSeed(seed, 7)), "# the scheduler: ", "# ours: ", "name: pod-7\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

// TestShrink: what is left is what it takes, in the simplest numbers.
func TestShrink(t *testing.T) {
	// The mistake: from five GPUs on in a sidecar, a pod is charged nothing.
	blind := misread(func(p *corev1.Pod) {
		for i := range p.Spec.InitContainers {
			if c := &p.Spec.InitContainers[i]; isSidecar(c) {
				q := c.Resources.Requests[gpus[0]]
				finishIf(p, q.Value() >= 5)
			}
		}
	})
	pods := []*corev1.Pod{notation("m1 m2"), notation("i1 s40 m3 m1"), notation("s2 i7")}
	for i, name := range []string{"pod-0", "pod-1", "pod-2"} {
		pods[i].Name, pods[i].Status.NominatedNodeName = name, "node-1"
	}
	want := notation("s5")
	want.Name, want.Status.Phase, want.Spec.InitContainers[0].Name = "pod-1", "", ""
	if diff := cmp.Diff([]*corev1.Pod{want}, shrink(pods, blind)); diff != "" {
		t.Errorf("shrunk pod (-want +got):\n%s", diff)
	}
}

func TestShrinkLeavesThePodsAlone(t *testing.T) {
	pods := cluster(seed, 0, 8)
	shrink(pods, planted["R1 the phase is not looked at"])
	if diff := cmp.Diff(cluster(seed, 0, 8), pods); diff != "" {
		t.Errorf("the pods changed:\n%s", diff)
	}
}
