package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Key says what a number is about. Node is "" for all nodes that do not exist
// together (R3).
type Key struct {
	Node     string `json:"node"`
	Resource string `json:"resource"`
}

// Counts is what is requested. What is missing is 0.
type Counts map[Key]int64

func (c Counts) String() string {
	var out []string
	for key, n := range c {
		if n != 0 {
			out = append(out, fmt.Sprintf("%d %s on %s", n, key.Resource, key.where()))
		}
	}
	slices.Sort(out)
	return cmp.Or(strings.Join(out, ", "), "nothing")
}

func (k Key) where() string { return cmp.Or(k.Node, "a node that does not exist") }

// Counter counts what pods request on nodes.
type Counter func(nodes []*corev1.Node, pods []*corev1.Pod) Counts

// Scheduler counts with kube-scheduler's own NodeInfo, one for each node name: the
// scheduler keeps one for a node that it does not know, too.
func Scheduler(nodes []*corev1.Node, pods []*corev1.Pod) Counts {
	infos := map[string]*framework.NodeInfo{}
	for _, pod := range pods {
		if !reachesScheduler(pod) {
			continue
		}
		info := infos[pod.Spec.NodeName]
		if info == nil {
			info = framework.NewNodeInfo()
			infos[pod.Spec.NodeName] = info
		}
		info.AddPod(pod)
		if strings.HasPrefix(pod.Spec.NodeName, alonePrefix) {
			saturate(info, pod)
		}
	}
	exists := map[string]bool{}
	for _, node := range nodes {
		exists[node.Name] = true
	}
	counts := Counts{}
	for node, info := range infos {
		if !exists[node] {
			node = ""
		}
		for name, amount := range info.Requested.ScalarResources {
			if isGPU[name] {
				counts[Key{node, string(name)}] += amount
			}
		}
	}
	return counts
}

// saturate corrects the number of the only pod of a node where its sum is beyond 64
// bits: what NodeInfo has is then the low bits of it, and ours is the largest number
// (R11).
func saturate(info *framework.NodeInfo, pod *corev1.Pod) {
	for name, q := range resource.PodRequests(pod, resource.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}) {
		if isGPU[name] && q.CmpInt64(math.MaxInt64) > 0 {
			info.Requested.ScalarResources[name] = math.MaxInt64
		}
	}
}

// reachesScheduler reports whether the scheduler's informer delivers the pod, whose
// field selector is status.phase!=Succeeded,status.phase!=Failed, and whether its
// handler then adds the pod to a NodeInfo, which takes a node.
func reachesScheduler(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && pod.Spec.NodeName != ""
}

var names = func() count.Names {
	names, err := count.ParseNames(count.DefaultNames()...)
	if err != nil {
		panic(err) // the defaults of the controller itself
	}
	return names
}()

// Ours counts as the controller does: records first, then the sums.
func Ours(nodes []*corev1.Node, pods []*corev1.Pod) Counts {
	w := count.World{NodesKnown: true}
	for _, node := range nodes {
		record := count.ReadNode(node, names)
		w.Nodes = append(w.Nodes, &record)
	}
	for _, pod := range pods {
		record := count.ReadPod(pod, names)
		w.Pods = append(w.Pods, &record)
	}
	snap := count.Take(w)
	counts := Counts{}
	for i := range snap.Rows {
		row := &snap.Rows[i]
		counts[Key{row.Node, row.Resource}] += row.Requested
	}
	for i := range snap.Summaries {
		counts[Key{"", snap.Summaries[i].Resource}] += snap.Summaries[i].Orphaned
	}
	return counts
}

// Mismatch is a number on which the two sides do not agree.
type Mismatch struct {
	Key
	Scheduler int64 `json:"scheduler"`
	Ours      int64 `json:"ours"`
}

// compare lets both sides count the pods and returns how many numbers there were
// and which of them differ, in a fixed order.
func compare(pods []*corev1.Pod, ours Counter) (int, []Mismatch) {
	nodes := nodesOf(pods)
	// The scheduler goes first: should ours change a pod, the judge has seen it as
	// it was.
	want := Scheduler(nodes, pods)
	got := ours(nodes, pods)
	keys := map[Key]bool{}
	for _, side := range []Counts{want, got} {
		for key := range side {
			keys[key] = true
		}
	}
	var out []Mismatch
	for key := range keys {
		if want[key] != got[key] {
			out = append(out, Mismatch{key, want[key], got[key]})
		}
	}
	slices.SortFunc(out, func(a, b Mismatch) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Resource, b.Resource))
	})
	return len(want), out
}

// nodesOf makes the nodes that the pods name and that exist. Half of them have no
// devices: a row then stands on requests alone (N1).
func nodesOf(pods []*corev1.Pod) []*corev1.Node {
	found := map[string]bool{}
	for _, pod := range pods {
		if name := pod.Spec.NodeName; name != "" && !strings.HasPrefix(name, gonePrefix) {
			found[name] = true
		}
	}
	var nodes []*corev1.Node
	for _, name := range slices.Sorted(maps.Keys(found)) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name[len(name)-1]%2 == 0 {
			node.Status.Capacity, node.Status.Allocatable = devices, devices
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// devices is eight of everything. Nobody changes it.
var devices = func() corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range gpus {
		list[name] = quantities("8")[0]
	}
	return list
}()
