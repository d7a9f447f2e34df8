package count_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

const worlds = 1000

// TestTrimmingLosesNothing: what is counted from records is what is counted from
// the pods themselves, and all that follows from it fits together (R1–R3, R6–R11,
// N1–N3, P1).
func TestTrimmingLosesNothing(t *testing.T) {
	for seed := range uint64(worlds) {
		if err := check(randomWorld(seed)); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestRandomWorldsHaveEverything: a property holds of what occurs.
func TestRandomWorldsHaveEverything(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(worlds) {
		w := randomWorld(seed)
		out := takeOf(w)
		sum := out.snapshot.Of(count.NVIDIA)
		for what, yes := range map[string]bool{
			"requested": sum.Requested > 0, "orphaned": sum.Orphaned > 0, "pending": sum.Pending.Devices > 0,
			"free": sum.Free > 0, "overcommitted": sum.Overcommitted > 0, "not usable": sum.UsableFree < sum.Free,
			"saturated": sum.Requested == 1<<63-1, "nodes not known": !w.nodesKnown, "several models": len(sum.Models) > 1,
			"below zero": belowZero(out.world), "nothing below zero": !belowZero(out.world),
			"several reasons": len(sum.Pending.Reasons) > 1, "several namespaces": len(sum.Namespaces) > 1,
			"any model": sum.Pending.AnyModel > 0, "one of several models": sum.Pending.SeveralModels > 0, "a model that no node has": sum.Pending.AbsentModel > 0,
			"one model": slices.ContainsFunc(sum.Models, func(m count.Model) bool { return m.Pending > 0 }),
		} {
			if yes {
				seen[what]++
			} else {
				seen[what] += 0
			}
		}
	}
	for what, n := range seen {
		if n < 10 {
			t.Errorf("%s: in %d of %d random worlds", what, n, worlds)
		}
	}
}

func randomWorld(seed uint64) rawWorld {
	r := rand.New(rand.NewPCG(seed, 0))
	data := make([]byte, 64+r.IntN(2000))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return makeWorld(data)
}

// FuzzWorld looks for a cluster on which the numbers do not fit together.
func FuzzWorld(f *testing.F) {
	for seed := range uint64(8) {
		data := make([]byte, 256)
		r := rand.New(rand.NewPCG(seed, 1))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), 2048)] // about 80 pods; more take longer and show no more
		if err := check(makeWorld(data)); err != nil {
			t.Error(err)
		}
	})
}

// longExponent is in numbers like 1e1000000. Decoding those is quick and adding
// to them takes seconds, in the library and so for everybody.
var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4,}`)

// FuzzObjects reads whatever decodes as a pod and as a node.
func FuzzObjects(f *testing.F) {
	for _, p := range []*corev1.Pod{
		pod(), pod(waiting, gated), pod(phase(corev1.PodFailed)), pod(deleted, inits(sidecar("1"), step("4"))),
		pod(func(p *corev1.Pod) {
			p.Spec.Overhead, p.Status.AllocatedResources = list("1500m"), list("1e3")
			p.Status.Resources = &corev1.ResourceRequirements{Requests: list("-1")}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "m2", AllocatedResources: list("4Ki")}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
		}),
	} {
		podText, _ := json.Marshal(p)
		nodeText, _ := json.Marshal(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"nvidia.com/gpu.replicas": "4"}},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: count.NVIDIA, Effect: corev1.TaintEffectNoSchedule}}},
			Status:     corev1.NodeStatus{Capacity: list("8"), Allocatable: list("7.5")},
		})
		f.Add(string(podText), string(nodeText))
	}
	f.Fuzz(func(t *testing.T, podText, nodeText string) {
		if longExponent.MatchString(podText) || longExponent.MatchString(nodeText) {
			t.Skip("an exponent that takes seconds to add up")
		}
		var p corev1.Pod
		var n corev1.Node
		if json.Unmarshal([]byte(podText), &p) != nil || json.Unmarshal([]byte(nodeText), &n) != nil {
			t.Skip("no pod or no node")
		}
		p.Status.ExtendedResourceClaimStatus = nil // what DRA serves is counted by claims, which this world has none of
		if err := check(rawWorld{pods: []*corev1.Pod{&p}, nodes: []*corev1.Node{&n}, nodesKnown: true}); err != nil {
			t.Error(err)
		}
	})
}

// FuzzNames: an entry is refused by its name, or takes exactly what it says (N6).
func FuzzNames(f *testing.F) {
	for _, entry := range append(count.DefaultNames(), "gpu", "*", "nvidia.com/*", "a.kubernetes.io/x*", "x/y**", "NVIDIA .com/gpu", "") {
		f.Add(entry, "nvidia.com/gpu")
		f.Add(entry, entry)
	}
	f.Fuzz(func(t *testing.T, entry, name string) {
		n, err := count.ParseNames(entry)
		if err != nil {
			if quoted := fmt.Sprintf("%q", entry); !strings.Contains(err.Error(), quoted) {
				t.Errorf("%v does not name %s", err, quoted)
			}
			if n.Match(name) {
				t.Errorf("%q is refused and takes %q", entry, name)
			}
			return
		}
		prefix, pattern := strings.CutSuffix(entry, "*")
		want := name == entry && !pattern || pattern && len(name) > len(prefix) && name[:len(prefix)] == prefix
		if n.Match(name) != want {
			t.Errorf("%q takes %q: %v, want %v", entry, name, !want, want)
		}
		if domain, _, _ := strings.Cut(name, "/"); want && !strings.HasPrefix(entry, domain+"/") {
			t.Errorf("%q takes %q, of another vendor", entry, name)
		}
	})
}

// taken is what became of a rawWorld.
type taken struct {
	world    count.World
	snapshot *count.Snapshot
}

func takeOf(raw rawWorld) taken {
	w := count.World{NodesKnown: raw.nodesKnown, Pods: read(raw.pods...)}
	if raw.nodesKnown {
		for _, n := range raw.nodes {
			record := count.ReadNode(n, names)
			w.Nodes = append(w.Nodes, &record)
		}
	}
	return taken{w, count.Take(w)}
}

// check counts the cluster and returns the first thing that is wrong.
func check(raw rawWorld) error {
	podsBefore, nodesBefore := deepCopies(raw.pods), deepCopies(raw.nodes)
	out := takeOf(raw)
	if !reflect.DeepEqual(podsBefore, raw.pods) || !reflect.DeepEqual(nodesBefore, raw.nodes) {
		return fmt.Errorf("reading changed an object")
	}
	if !reflect.DeepEqual(out.world, takeOf(raw).world) {
		return fmt.Errorf("counting changed a record, or a second reading gives another one")
	}
	return firstOf(
		func() error { return checkRecount(raw, out) },
		func() error { return checkRows(out.snapshot) },
		func() error { return checkSums(out) },
		func() error { return checkOrder(out) },
	)
}

func firstOf(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func deepCopies[T interface{ DeepCopy() T }](objects []T) []T {
	var out []T
	for _, o := range objects {
		out = append(out, o.DeepCopy())
	}
	return out
}
