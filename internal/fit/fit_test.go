package fit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/fit"
	"github.com/gpu-summary/gpu-summary-controller/internal/gather"
)

var _ gather.Visitor = (*fit.Facts)(nil)

var names = func() count.Names {
	names, err := count.ParseNames(count.DefaultNames()...)
	if err != nil {
		panic(err)
	}
	return names
}()

// objects is a cluster as the API server has it.
type objects struct {
	nodes   []*corev1.Node
	pods    []*corev1.Pod
	classes []*resourcev1.DeviceClass
	slices  []*resourcev1.ResourceSlice
}

// ask counts the cluster, and asks.
func (o objects) ask(t *testing.T, questions ...fit.Question) []fit.Answer {
	t.Helper()
	answers, err := fit.Ask(o.facts(questions...), o.count(), questions...)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

func (o objects) facts(questions ...fit.Question) *fit.Facts {
	facts := fit.NewFacts(names, questions...)
	for _, p := range o.pods { // before their nodes, as gather may tell of them
		facts.Pod(p)
	}
	for _, n := range o.nodes {
		facts.Node(n)
	}
	for _, c := range o.classes {
		facts.DeviceClass(c)
	}
	return facts
}

func (o objects) count() *count.Snapshot {
	w := count.World{NodesKnown: true, DRA: &count.DRA{State: count.DRASynced, Resources: count.DefaultDRAClasses()}}
	for _, p := range o.pods {
		r := count.ReadPod(p, names)
		w.Pods = append(w.Pods, &r)
	}
	for _, n := range o.nodes {
		r := count.ReadNode(n, names)
		w.Nodes = append(w.Nodes, &r)
	}
	for _, c := range o.classes {
		r := count.ReadDeviceClass(c, names)
		w.DRA.Classes = append(w.DRA.Classes, &r)
	}
	for _, s := range o.slices {
		r := count.ReadResourceSlice(s)
		w.DRA.Slices = append(w.DRA.Slices, &r)
	}
	return count.Take(w)
}

// list makes quantities of "cpu=4 memory=1Gi gpu=8".
func list(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		if name == "gpu" {
			name = count.NVIDIA
		}
		out[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return out
}

// node is ready and has room, unless a change says otherwise.
func node(name, resources string, changes ...func(*corev1.Node)) *corev1.Node {
	allocatable := list("cpu=64 memory=256Gi pods=110")
	for name, q := range list(resources) {
		allocatable[name] = q
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, "nvidia.com/gpu.product": "H100"}},
		Status: corev1.NodeStatus{
			Allocatable: allocatable, Capacity: allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(n)
	}
	return n
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func tainted(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	}
}

// pod asks for resources, as limits and requests, like the API server stores it.
func pod(name, resources string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": strings.TrimRight(name, "0123456789")}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: list(resources)},
		}}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

// copies asks for copies of a pod.
func copies(n int64, p *corev1.Pod) fit.Question {
	return fit.Question{Name: "pod/" + p.Name, Copies: n, Pod: p}
}

// lines is an answer in few words: the verdict, where the copies go, then the refusals.
func lines(a fit.Answer) (out []string) {
	head := fmt.Sprintf("%s: %d of %d", a.Verdict, a.Placed, a.Copies)
	for _, p := range a.Placements {
		head += fmt.Sprintf(", %s ×%d", p.Node, p.Copies)
	}
	out = append(out, head)
	for _, r := range a.Refusals {
		out = append(out, fmt.Sprintf("%s: %s [%s]", r.Reason, r.Message, strings.Join(r.Nodes, " ")))
	}
	return out
}

func want(t *testing.T, a fit.Answer, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, lines(a)); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// TestGPUsAlone: the words of the simple form, and N3.
func TestGPUsAlone(t *testing.T) {
	o := objects{
		nodes: []*corev1.Node{
			node("a", "gpu=8"), node("b", "gpu=8"), node("c", "gpu=8"), node("full", "gpu=8"),
			node("cordoned", "gpu=8", cordoned),
			node("lost", "gpu=8", func(n *corev1.Node) { n.Status.Conditions = nil }),
			node("tainted", "gpu=8", tainted("dedicated", corev1.TaintEffectNoSchedule)),
			node("own-taint", "gpu=4", tainted("nvidia.com/gpu", corev1.TaintEffectNoSchedule)),
			node("old", "gpu=8", labelled("nvidia.com/gpu.product", "T4")),
			node("cpu", ""),
		},
		pods: []*corev1.Pod{
			pod("p1", "gpu=5", on("a")), pod("p2", "gpu=6", on("b")), pod("p3", "gpu=6", on("c")), pod("p4", "gpu=8", on("full")),
			pod("p5", "gpu=9", on("full")),
		},
	}
	q := fit.GPUs(count.NVIDIA, 8, 1)
	q.Models = []string{"H100"}
	want(t, o.ask(t, q)[0],
		"does-not-fit: 0 of 1",
		"cordoned: 8 free on 1 node, but cordoned [cordoned]",
		"not-ready: 8 free on 1 node, but not ready [lost]",
		"tainted: 8 free on 1 node, but the node is tainted [tainted]",
		"full: none free on 1 node [full]",
		"too-few: 11 free on 4 nodes, none has 8 [a b c own-taint]",
		"other-model: 8 free on 1 node, but of model T4 [old]",
		"no-devices: 1 node without nvidia.com/gpu [cpu]",
	)
	want(t, o.ask(t, fit.GPUs(count.NVIDIA, 2, 4))[0],
		"fits: 4 of 4, a ×1, b ×1, c ×1, own-taint ×1", // the smallest gaps first
		"cordoned: 8 free on 1 node, but cordoned [cordoned]",
		"not-ready: 8 free on 1 node, but not ready [lost]",
		"tainted: 8 free on 1 node, but the node is tainted [tainted]",
		"full: none free on 3 nodes [b c full]",
		"too-few: 1 free on 1 node, none has 2 [a]",
		"no-devices: 1 node without nvidia.com/gpu [cpu]",
	)
}
