package publish

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

func snapshot(nodesKnown bool) *count.Snapshot {
	return &count.Snapshot{
		Observed:   count.Observed{Pods: "12", Nodes: map[bool]string{true: "7"}[nodesKnown]},
		NodesKnown: nodesKnown,
		Summaries: []count.Summary{{
			Resource: count.NVIDIA,
			Numbers:  count.Numbers{Allocatable: 16, Requested: 9, Free: 7},
			Pending:  count.Pending{Devices: 4},
		}},
		Rows: []count.Row{
			{Node: "n1", Resource: count.NVIDIA, Numbers: count.Numbers{Requested: 9}},
			{Node: "n2", Resource: "amd.com/gpu", Numbers: count.Numbers{Requested: 3}},
			{Node: "n2", Resource: count.NVIDIA},
		},
	}
}

// rendered is what the base of a set should say, with all rows on it.
func rendered(s set, snap *count.Snapshot) content {
	want := s.head(snap)
	want.labels = map[string]string{labelManagedBy: manager, LabelInstance: "gpu-summary"}
	want.observed = versions(snap.Observed)
	var t table
	t.reset(s.key)
	s.rows(snap, &t)
	t.fill(&want, nil, t.pieces)
	return want
}

func TestRender(t *testing.T) {
	nvidia := summarySet("gpu-summary", count.NVIDIA)
	want := content{
		data: map[string]string{"n1": "9", "n2": "0"},
		annotations: map[string]string{
			"gpu-summary/resource": "nvidia.com/gpu", "gpu-summary/requested": "9", "gpu-summary/pending": "4",
			"gpu-summary/allocatable": "16", "gpu-summary/free": "7", "gpu-summary/overcommitted": "0", "gpu-summary/orphaned": "0",
		},
		labels:   map[string]string{"app.kubernetes.io/managed-by": "gpu-summary-controller", "gpu-summary/instance": "gpu-summary"},
		observed: "pods@12 nodes@7",
	}
	got := rendered(nvidia, snapshot(true))
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(content{})); diff != "" {
		t.Errorf("with nodes (-want +got):\n%s", diff)
	}
	got = rendered(nvidia, snapshot(false))
	for _, unknown := range []string{"allocatable", "free", "overcommitted", "orphaned"} {
		if v, ok := got.annotations[prefix+unknown]; ok {
			t.Errorf("without nodes %s is said to be %s", unknown, v)
		}
	}
	if got.observed != "pods@12" {
		t.Errorf("observed is %q", got.observed)
	}
	if name := SummaryName("gpu-summary", "nvidia.com/mig-1g.5gb"); name != "gpu-summary.nvidia.com.mig-1g.5gb" {
		t.Errorf("the ConfigMap of a MIG profile is called %s", name)
	}
}

// TestCompare: what is ours is compared, what is others' is not, and applying
// what differs leaves nothing to do.
func TestCompare(t *testing.T) {
	want := rendered(summarySet("gpu-summary", count.NVIDIA), snapshot(true))
	right := &corev1.ConfigMap{}
	apply(right, want)

	for _, tc := range []struct {
		name   string
		change func(*corev1.ConfigMap)
		want   string // the change that is reported, "" for none
	}{
		{"right", func(*corev1.ConfigMap) {}, ""},
		{"other versions were observed", func(cm *corev1.ConfigMap) { cm.Annotations[AnnotationObserved] = "pods@1" }, ""},
		{"others' annotation", func(cm *corev1.ConfigMap) { cm.Annotations["example.com/a"] = "1" }, ""},
		{"others' label", func(cm *corev1.ConfigMap) { cm.Labels["app"] = "x" }, ""},
		{"others' key in the data", func(cm *corev1.ConfigMap) { cm.Data["README"] = "hello" }, "README hello→none"},
		{"a long one", func(cm *corev1.ConfigMap) { cm.Data["README"] = strings.Repeat("a", 99) }, "README (99→4 bytes)"},
		{"others' binary data", func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"b": {1}} }, "b binary→none"},
		{"a wrong row", func(cm *corev1.ConfigMap) { cm.Data["n1"] = "8" }, "n1 8→9"},
		{"a missing row", func(cm *corev1.ConfigMap) { delete(cm.Data, "n2") }, "n2 none→0"},
		{"no rows at all", func(cm *corev1.ConfigMap) { cm.Data = nil }, "n1 none→9, n2 none→0"},
		{"a wrong total", func(cm *corev1.ConfigMap) { cm.Annotations[AnnotationPending] = "0" }, "gpu-summary/pending 0→4"},
		{"a total that is not ours any more", func(cm *corev1.ConfigMap) { cm.Annotations[prefix+"old"] = "1" }, "gpu-summary/old 1→none"},
		{"no annotations", func(cm *corev1.ConfigMap) { cm.Annotations = nil }, "gpu-summary/allocatable none→16, gpu-summary/free none→7, gpu-summary/orphaned none→0, gpu-summary/overcommitted none→0, gpu-summary/pending none→4, gpu-summary/requested none→9, gpu-summary/resource none→nvidia.com/gpu"},
		{"no labels", func(cm *corev1.ConfigMap) { cm.Labels = nil }, "label app.kubernetes.io/managed-by, label gpu-summary/instance"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			have := right.DeepCopy()
			tc.change(have)
			foreign := metav1.ObjectMeta{Annotations: map[string]string{}, Labels: map[string]string{}}
			if v, ok := have.Annotations["example.com/a"]; ok {
				foreign.Annotations["example.com/a"] = v
			}
			if got := strings.Join(compare(have, want), ", "); got != tc.want {
				t.Errorf("changes are %q, want %q", got, tc.want)
			}
			apply(have, want)
			if again := compare(have, want); len(again) > 0 {
				t.Errorf("after applying there is still %q", again)
			}
			if have.Annotations["example.com/a"] != foreign.Annotations["example.com/a"] {
				t.Error("an annotation of others was lost")
			}
		})
	}
}

func TestResultNamesAFewChanges(t *testing.T) {
	r := Result{Writes: []Write{
		{Name: "x", Action: Updated, Reason: Changed, Changes: strings.Split("a b c d e f g h i j", " ")},
		{Name: "y", Action: Deleted, Reason: Unneeded},
		{Name: "z", Action: Created, Reason: Changed, Changes: []string{"k"}},
	}}
	if got, want := r.String(), "x updated: a, b, c, d, e, f, g, h and 2 more; y deleted; z created: k"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Writes = append(r.Writes, r.Writes...)
	if got := r.String(); !strings.HasSuffix(got, "; 2 more objects") {
		t.Errorf("of six objects it says %q", got)
	}
	if got := r.Reasons(); !slices.Equal(got, []Reason{Changed, Unneeded}) {
		t.Errorf("reasons are %q", got)
	}
	if (Result{}).Wrote() || !r.Wrote() {
		t.Error("Wrote is wrong")
	}
}
