package count_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

func condition(status corev1.ConditionStatus, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: status, Reason: reason})
	}
}

func gated(p *corev1.Pod)     { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }
func nominated(p *corev1.Pod) { p.Status.NominatedNodeName = "n1" }

// TestWhyPodsWait: P1 and R5. Each waiting pod has one reason; those that are
// being deleted or have finished wait for nothing.
func TestWhyPodsWait(t *testing.T) {
	unschedulable := condition(corev1.ConditionFalse, corev1.PodReasonUnschedulable)
	for _, tc := range []struct {
		name    string
		changes []func(*corev1.Pod)
		want    count.Wait // 0 when it does not wait
	}{
		{"nobody has looked at it", nil, count.Untried},
		{"it fits nowhere", []func(*corev1.Pod){unschedulable}, count.Unschedulable},
		{"its scheduler failed", []func(*corev1.Pod){condition(corev1.ConditionFalse, corev1.PodReasonSchedulerError)}, count.Untried},
		{"gated", []func(*corev1.Pod){gated, condition(corev1.ConditionFalse, corev1.PodReasonSchedulingGated)}, count.Gated},
		{"nominated pods are unschedulable too", []func(*corev1.Pod){nominated, unschedulable}, count.Nominated},
		{"being deleted", []func(*corev1.Pod){deleted}, 0},
		{"failed before it was bound", []func(*corev1.Pod){phase(corev1.PodFailed)}, 0},
		{"bound", []func(*corev1.Pod){on("n1")}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pending := count.Take(world(read(pod(append([]func(*corev1.Pod){waiting}, tc.changes...)...)))).Of(count.NVIDIA).Pending
			var want []count.Reason
			if tc.want != 0 {
				want = []count.Reason{{Wait: tc.want, Devices: 2, Pods: 1}}
			}
			if diff := cmp.Diff(want, pending.Reasons); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDemandByShapeNamespaceAndPriority(t *testing.T) {
	namespace := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = name } }
	priority := func(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }
	sum := count.Take(world(read(
		pod(priority(-1)),
		pod(priority(100), namespace("b")),
		pod(priority(2_000_001_000), namespace("b")),
		pod(waiting, containers(container("8"))),
		pod(waiting, containers(container("8")), gated),
		pod(waiting, containers(container("1")), namespace("b"), priority(-5)),
	))).Of(count.NVIDIA)
	want := count.Pending{
		Devices: 17, Pods: 3,
		Reasons: []count.Reason{{Wait: count.Untried, Devices: 9, Pods: 2}, {Wait: count.Gated, Devices: 8, Pods: 1}},
		Shapes:  []count.Shape{{Devices: 1, Pods: 1}, {Devices: 8, Pods: 2}}, AnyModel: 17,
	}
	if diff := cmp.Diff(want, sum.Pending); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]count.Share{{Name: "b", Requested: 4, Pending: 1}, {Name: "ns", Requested: 2, Pending: 16}}, sum.Namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	bands := []count.Share{{Name: "negative", Requested: 2, Pending: 1}, {Name: "default", Pending: 16}, {Name: "high", Requested: 2}, {Name: "system", Requested: 2}}
	if diff := cmp.Diff(bands, sum.Priorities); diff != "" {
		t.Errorf("priorities (-want +got):\n%s", diff)
	}
}

// TestWaitsAreReadAsTheyAreWritten: a name that a later version has is none of them.
func TestWaitsAreReadAsTheyAreWritten(t *testing.T) {
	for _, want := range append([]count.Wait{0}, count.Waits...) {
		text, err := want.MarshalText()
		got := count.Wait(99)
		if err == nil {
			err = got.UnmarshalText(text)
		}
		if err != nil || got != want {
			t.Errorf("%q is read as %d, %v; want %d", text, got, err, want)
		}
	}
	got := count.Gated
	if err := got.UnmarshalText([]byte("retrograde")); err != nil || got != 0 {
		t.Errorf("an unknown name is read as %d, %v", got, err)
	}
}
