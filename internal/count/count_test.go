package count_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

var names = func() count.Names {
	names, err := count.ParseNames(count.DefaultNames()...)
	if err != nil {
		panic(err)
	}
	return names
}()

func list(n string) corev1.ResourceList {
	return corev1.ResourceList{count.NVIDIA: resource.MustParse(n)}
}

func container(n string) corev1.Container {
	return corev1.Container{Name: "m" + n, Resources: corev1.ResourceRequirements{Requests: list(n)}}
}

// pod is bound to n1 and asks for two GPUs unless a change says otherwise.
func pod(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{container("2")}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func containers(cs ...corev1.Container) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers = cs }
}

func inits(cs ...corev1.Container) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.InitContainers = cs }
}

func sidecar(n string) corev1.Container {
	c := container(n)
	c.Name = "s" + n
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

func step(n string) corev1.Container {
	c := container(n)
	c.Name = "i" + n
	return c
}

func phase(ph corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = ph }
}

// TestRequested holds what kube-scheduler's NodeInfo gives for each pod.
func TestRequested(t *testing.T) {
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want int64
	}{
		{"R7 containers are summed", pod(containers(container("2"), container("1"))), 3},
		{"R7 a larger init step wins", pod(inits(step("4"))), 4},
		{"R7 a smaller init step does not", pod(inits(step("1")), containers(container("2"), container("2"))), 4},
		{"R7 a sidecar adds to the containers", pod(inits(sidecar("1")), containers(container("4"))), 5},
		{"R7 a sidecar adds to later init steps", pod(inits(sidecar("1"), step("4"))), 5},
		{"R7 and not to earlier ones", pod(inits(step("4"), sidecar("1"))), 4},
		{"R7 overhead adds", pod(func(p *corev1.Pod) { p.Spec.Overhead = list("1") }), 3},
		{"R9 pod-level GPUs are ignored", pod(func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{
				count.NVIDIA: resource.MustParse("8"), corev1.ResourceCPU: resource.MustParse("4"),
			}}
		}), 2},
		{"R10 limits alone are not read", pod(containers(corev1.Container{Resources: corev1.ResourceRequirements{Limits: list("2")}})), 0},
		{"R1 Succeeded", pod(phase(corev1.PodSucceeded)), 0},
		{"R1 Failed", pod(phase(corev1.PodFailed)), 0},
		{"R1 Unknown counts", pod(phase(corev1.PodUnknown)), 2},
		{"R1 Pending but bound counts", pod(phase(corev1.PodPending)), 2},
		{"R1 no phase counts", pod(phase("")), 2},
		{"R2 terminating counts", pod(deleted), 2},
		{"R8 status allocated wins over spec", pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "m2", AllocatedResources: list("4")}}
		}), 4},
		{"R11 rounds up", pod(containers(container("1500m"))), 2},
		{"N6 a name is compared whole", pod(containers(corev1.Container{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpumem": resource.MustParse("8000"), "nvidia.com/gpucores": resource.MustParse("25")},
		}})), 0},
		{"zero is nothing", pod(containers(container("0"))), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.pod.DeepCopy()
			snap := count.Take(world(read(tc.pod)))
			sum := snap.Of(count.NVIDIA)
			if sum.Requested != tc.want || sum.Pending.Devices != 0 {
				t.Errorf("requested %d, pending %d, want %d and 0", sum.Requested, sum.Pending.Devices, tc.want)
			}
			if diff := cmp.Diff(before, tc.pod); diff != "" {
				t.Errorf("counting changed the pod:\n%s", diff)
			}
		})
	}
}

func deleted(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
func waiting(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending }

func read(pods ...*corev1.Pod) []*count.Pod {
	var out []*count.Pod
	for _, p := range pods {
		r := count.ReadPod(p, names)
		out = append(out, &r)
	}
	return out
}

// node takes pods and has so many devices, unless a change says otherwise.
func node(name, capacity, allocatable string, changes ...func(*corev1.Node)) *count.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"nvidia.com/gpu.product": "A100"}},
		Status: corev1.NodeStatus{
			Capacity: list(capacity), Allocatable: list(allocatable),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(n)
	}
	record := count.ReadNode(n, names)
	return &record
}

func world(pods []*count.Pod) count.World {
	return count.World{
		Pods:       pods,
		Nodes:      []*count.Node{node("n1", "8", "8"), node("n2", "8", "7"), node("cpu", "0", "0")},
		NodesKnown: true,
		Observed:   count.Observed{Pods: "12", Nodes: "7"},
	}
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func TestTake(t *testing.T) {
	w := world(read(
		pod(),
		pod(on("n2"), containers(container("9"))),
		pod(on("gone"), containers(container("3"))),
		pod(waiting, containers(container("4"))),
		pod(waiting, deleted),
		pod(waiting, phase(corev1.PodFailed)),
	))
	numbers := count.Numbers{Capacity: 16, Allocatable: 15, Requested: 11, Free: 6, UsableFree: 6, Overcommitted: 2}
	fit := count.Fit{
		LargestFree: 6,
		Sizes:       []count.Size{{1, 6, 0}, {2, 3, 0}, {4, 1, 2}, {8, 0, 6}},
		Histogram:   []count.Bucket{{Free: 0, Nodes: 1}, {Free: 6, Nodes: 1}},
	}
	want := &count.Snapshot{
		Complete:   w.Observed, // what nobody says is the same
		Observed:   w.Observed,
		NodesKnown: true,
		Rows: []count.Row{
			{Node: "n1", Resource: count.NVIDIA, Source: count.DevicePlugin, Model: "A100", Numbers: count.Numbers{Capacity: 8, Allocatable: 8, Requested: 2, Free: 6, UsableFree: 6}},
			{Node: "n2", Resource: count.NVIDIA, Source: count.DevicePlugin, Model: "A100", Numbers: count.Numbers{Capacity: 8, Allocatable: 7, Requested: 9, Overcommitted: 2}},
		},
		Summaries: []count.Summary{{
			Resource: count.NVIDIA,
			Numbers:  numbers,
			Orphaned: 3,
			Pending: count.Pending{
				Devices: 4, Pods: 1,
				Reasons: []count.Reason{{Wait: count.Untried, Devices: 4, Pods: 1}},
				Shapes:  []count.Shape{{Devices: 4, Pods: 1}}, AnyModel: 4,
			},
			Nodes: 2, Fit: fit,
			Models:     []count.Model{{Name: "A100", Nodes: 2, Numbers: numbers, Fit: fit}},
			Namespaces: []count.Share{{Name: "ns", Requested: 11, Pending: 4}},
			Priorities: []count.Share{{Name: "default", Requested: 11, Pending: 4}},
		}},
	}
	if diff := cmp.Diff(want, count.Take(w)); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}

	w.Nodes = append(w.Nodes, node("gone", "0", "0"))
	snap := count.Take(w)
	if sum := snap.Of(count.NVIDIA); sum.Orphaned != 0 || sum.Requested != 14 || len(snap.Rows) != 3 {
		t.Errorf("R3: the node came back: orphaned %d, requested %d, %d rows; want 0, 14, 3", sum.Orphaned, sum.Requested, len(snap.Rows))
	}
}

func TestTheOrderOfTheInputMakesNoDifference(t *testing.T) {
	w := world(read(pod(), pod(on("n2"), containers(container("3"))), pod(waiting), pod(on("gone"))))
	want := count.Take(w)
	slices.Reverse(w.Pods)
	slices.Reverse(w.Nodes)
	if diff := cmp.Diff(want, count.Take(w)); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

func TestWithoutNodesRowsFollowPods(t *testing.T) {
	snap := count.Take(count.World{Pods: read(pod(), pod(on("n0")))})
	row := func(node string) count.Row {
		return count.Row{Node: node, Resource: count.NVIDIA, Source: count.DevicePlugin, Model: count.UnknownModel, Numbers: count.Numbers{Requested: 2}}
	}
	if diff := cmp.Diff([]count.Row{row("n0"), row("n1")}, snap.Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if sum := snap.Of(count.NVIDIA); sum.Overcommitted != 0 || sum.Orphaned != 0 {
		t.Errorf("overcommitted %d, orphaned %d of nodes that nobody knows", sum.Overcommitted, sum.Orphaned)
	}
}

func TestTotalsSaturate(t *testing.T) {
	huge := containers(container("9223372036854775807"))
	sum := count.Take(world(read(pod(huge), pod(huge), pod(waiting, huge), pod(waiting, huge)))).Of(count.NVIDIA)
	if sum.Requested != math.MaxInt64 || sum.Pending.Devices != math.MaxInt64 || sum.Overcommitted < 0 {
		t.Errorf("R11: requested %d, pending %d, overcommitted %d", sum.Requested, sum.Pending.Devices, sum.Overcommitted)
	}
}

// TestASumWithinAPodSaturates: an API server accepts such a pod, and anyone may
// create one. R11.
func TestASumWithinAPodSaturates(t *testing.T) {
	two := containers(container("9223372036854775807"), container("1"))
	sum := count.Take(world(read(pod(two), pod(), pod(waiting, two)))).Of(count.NVIDIA)
	if sum.Requested != math.MaxInt64 || sum.Pending.Devices != math.MaxInt64 {
		t.Errorf("requested %d, pending %d", sum.Requested, sum.Pending.Devices)
	}
}

// TestEqual decides what causes a pass, and what does not.
func TestEqual(t *testing.T) {
	for _, tc := range []struct {
		name  string
		to    *corev1.Pod
		alike bool
	}{
		{"the same", pod(), true},
		{"Pending to Running on its node", pod(phase(corev1.PodPending)), true},
		{"a label", pod(func(p *corev1.Pod) { p.Labels = map[string]string{"a": "1"} }), true},
		{"a deletionTimestamp on its node", pod(deleted), true},
		{"finished", pod(phase(corev1.PodSucceeded)), false},
		{"another amount", pod(containers(container("3"))), false},
		{"another node", pod(func(p *corev1.Pod) { p.Spec.NodeName = "n2" }), false},
		{"another pod of that name, which asks for the same", pod(func(p *corev1.Pod) { p.UID = "v" }), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from, to := count.ReadPod(pod(), names), count.ReadPod(tc.to, names)
			if from.Equal(&to) != tc.alike || to.Equal(&from) != tc.alike {
				t.Errorf("alike is %v, want %v", !tc.alike, tc.alike)
			}
		})
	}
	from, to := count.ReadPod(pod(waiting), names), count.ReadPod(pod(waiting, deleted), names)
	if from.Equal(&to) {
		t.Error("P1: a waiting pod that is being deleted no longer counts, so the two differ")
	}
}

// TestRequestedByNode: a node with devices of two sources has one number (D2),
// which does not wrap (R11).
func TestRequestedByNode(t *testing.T) {
	row := func(node, resource string, source count.Source, requested int64) count.Row {
		return count.Row{Node: node, Resource: resource, Source: source, Numbers: count.Numbers{Requested: requested}}
	}
	snap := &count.Snapshot{Rows: []count.Row{
		row("a", "amd.com/gpu", count.DevicePlugin, 9),
		row("a", count.NVIDIA, count.DevicePlugin, 1),
		row("a", count.NVIDIA, count.DynamicResources, 2),
		row("b", count.NVIDIA, count.DevicePlugin, math.MaxInt64),
		row("b", count.NVIDIA, count.DynamicResources, 1),
		row("c", count.NVIDIA, count.DevicePlugin, 0),
	}}
	got := maps.Collect(snap.RequestedByNode(count.NVIDIA))
	if diff := cmp.Diff(map[string]int64{"a": 3, "b": math.MaxInt64, "c": 0}, got); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	for node := range snap.RequestedByNode(count.NVIDIA) {
		if node != "a" {
			t.Errorf("the first node is %s", node)
		}
		break
	}
	if n := len(maps.Collect(snap.RequestedByNode("google.com/tpu"))); n != 0 {
		t.Errorf("%d nodes of a resource that nobody has", n)
	}
}
