package fit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/fit"
)

// worlds is how many random clusters each property is tried on.
const worlds = 300

// onWorlds calls check with random clusters, each made of the seed that is printed if
// it fails.
func onWorlds(t *testing.T, check func(t *testing.T, r *rand.Rand, o objects)) {
	t.Helper()
	for seed := range uint64(worlds) {
		r := rand.New(rand.NewPCG(seed, 0))
		check(t, r, randomObjects(r))
		if t.Failed() {
			t.Fatalf("in the world of seed %d", seed)
		}
	}
}

func randomObjects(r *rand.Rand) (o objects) {
	for i := range 1 + r.IntN(6) {
		n := node(fmt.Sprint("n", i), fmt.Sprintf("gpu=%d cpu=1000 memory=9999Gi", r.IntN(9)), labelled("nvidia.com/gpu.product", []string{"A100", "H100"}[r.IntN(2)]))
		switch r.IntN(8) {
		case 0:
			// The node controller says it in both ways, and so does count.
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
			tainted(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule)(n)
		case 1:
			cordoned(n)
		case 2:
			tainted("team", corev1.TaintEffectNoExecute)(n)
		case 3:
			tainted("team", corev1.TaintEffectPreferNoSchedule)(n)
		}
		o.nodes = append(o.nodes, n)
	}
	for i := range r.IntN(12) {
		p := pod(fmt.Sprint("p", i), fmt.Sprintf("gpu=%d cpu=%d", r.IntN(4), r.IntN(3)))
		if r.IntN(6) > 0 {
			p.Spec.NodeName = fmt.Sprint("n", r.IntN(7)) // one that may not exist
		}
		if r.IntN(6) == 0 {
			p.Status.Phase = corev1.PodFailed
		}
		o.pods = append(o.pods, p)
	}
	return o
}

// TestGPUsAloneAreWhatTheSnapshotSays: placeable of each size, for all nodes and for
// those of each model.
func TestGPUsAloneAreWhatTheSnapshotSays(t *testing.T) {
	compared := 0
	onWorlds(t, func(t *testing.T, _ *rand.Rand, o objects) {
		sum := o.count().Of(count.NVIDIA)
		same := func(of count.Fit, models ...string) {
			for _, size := range of.Sizes {
				q := fit.GPUs(count.NVIDIA, size.Devices, 1000)
				q.Models = models
				a := o.ask(t, q)[0]
				if a.Room != size.Placeable || a.Placed != size.Placeable {
					t.Errorf("%d pods of %d GPUs (models %v) fit, room for %d; the snapshot says %d", a.Placed, size.Devices, models, a.Room, size.Placeable)
				}
				compared++
			}
		}
		same(sum.Fit)
		for _, m := range sum.Models {
			same(m.Fit, m.Name)
		}
	})
	t.Logf("%d numbers compared", compared)
}

// TestAPodOfGPUsAlone: a pod that asks for GPUs and nothing else fits where GPUs alone
// do, if nothing else is scarce.
func TestAPodOfGPUsAlone(t *testing.T) {
	onWorlds(t, func(t *testing.T, r *rand.Rand, o objects) {
		size, n := int64(1+r.IntN(8)), int64(1+r.IntN(9))
		simple := o.ask(t, fit.GPUs(count.NVIDIA, size, n))[0]
		full := o.ask(t, copies(n, pod("q", fmt.Sprintf("gpu=%d", size))))[0]
		if diff := cmp.Diff(simple.Placements, full.Placements); diff != "" || simple.Room != full.Room || simple.Verdict != full.Verdict {
			t.Errorf("GPUs alone: %v\nas a pod:   %v\n%s", lines(simple), lines(full), diff)
		}
	})
}

// TestWhatGoesMakesRoom: with a pod less, no fewer copies fit.
func TestWhatGoesMakesRoom(t *testing.T) {
	onWorlds(t, func(t *testing.T, r *rand.Rand, o objects) {
		if len(o.pods) == 0 {
			return
		}
		q := copies(50, pod("q", fmt.Sprintf("gpu=%d cpu=%d", r.IntN(4), r.IntN(300))))
		before := o.ask(t, q)[0]
		i := r.IntN(len(o.pods))
		o.pods = slices.Delete(slices.Clone(o.pods), i, i+1)
		if after := o.ask(t, q)[0]; after.Placed < before.Placed || after.Room < before.Room {
			t.Errorf("%d copies of room for %d, with one pod less %d of %d", before.Placed, before.Room, after.Placed, after.Room)
		}
	})
}

// TestPlacementsAreReal: with the copies bound where they are said to fit, nothing is
// overcommitted that was not, and as much is requested as the copies ask for.
func TestPlacementsAreReal(t *testing.T) {
	onWorlds(t, func(t *testing.T, r *rand.Rand, o objects) {
		size := int64(1 + r.IntN(4))
		p := pod("q", fmt.Sprintf("gpu=%d", size), []func(*corev1.Pod){
			func(*corev1.Pod) {}, apart("q", corev1.LabelHostname), beside("q", corev1.LabelHostname), spread("q", corev1.LabelHostname, 1),
		}[r.IntN(4)])
		before := o.count().Of(count.NVIDIA)
		a := o.ask(t, copies(5, p))[0]
		if (a.Verdict == fit.Fits) != (a.Placed == a.Copies) || a.Placed > a.Copies || a.Placed > a.Room {
			t.Errorf("%+v", a)
		}
		for _, placement := range a.Placements {
			for i := range placement.Copies {
				bound := p.DeepCopy()
				bound.Name, bound.Spec.NodeName = fmt.Sprint(placement.Node, i), placement.Node
				o.pods = append(o.pods, bound)
			}
		}
		after := o.count().Of(count.NVIDIA)
		if after.Overcommitted != before.Overcommitted || after.Requested != before.Requested+a.Placed*size {
			t.Errorf("%v: overcommitted %d before and %d after, requested %d and %d", lines(a), before.Overcommitted, after.Overcommitted, before.Requested, after.Requested)
		}
		// What does not fit does not fit either when those that do are there.
		if left := o.ask(t, copies(1, p))[0]; a.Placed < a.Copies && left.Placed > 0 {
			t.Errorf("%v: one more fits after all", lines(a))
		}
	})
}

// TestNothingIsChanged: neither objects, nor the snapshot, nor the question; and asking
// again gives the same.
func TestNothingIsChanged(t *testing.T) {
	onWorlds(t, func(t *testing.T, _ *rand.Rand, o objects) {
		q := copies(3, pod("q", "gpu=1 cpu=1", apart("q", corev1.LabelHostname), port80(""), spread("p", "zone", 1)))
		var before objects
		for _, p := range o.pods {
			before.pods = append(before.pods, p.DeepCopy())
		}
		for _, n := range o.nodes {
			before.nodes = append(before.nodes, n.DeepCopy())
		}
		asked := q.Pod.DeepCopy()
		facts, snap, same := o.facts(q), o.count(), o.count()
		first, err := fit.Ask(facts, snap, q, q)
		if err != nil {
			t.Fatal(err)
		}
		again, err := fit.Ask(facts, snap, q, q)
		if err != nil {
			t.Fatal(err)
		}
		for what, diff := range map[string]string{
			"pods": cmp.Diff(before.pods, o.pods), "nodes": cmp.Diff(before.nodes, o.nodes), "snapshot": cmp.Diff(same, snap),
			"question": cmp.Diff(asked, q.Pod), "answer, asked again": cmp.Diff(first, again),
		} {
			if diff != "" {
				t.Errorf("%s changed (-before +after):\n%s", what, diff)
			}
		}
	})
}

// TestTheOrderOfObjectsMakesNoDifference.
func TestTheOrderOfObjectsMakesNoDifference(t *testing.T) {
	onWorlds(t, func(t *testing.T, _ *rand.Rand, o objects) {
		q := copies(3, pod("q", "gpu=1 cpu=1", beside("p", corev1.LabelHostname)))
		want := o.ask(t, q)[0]
		slices.Reverse(o.pods)
		slices.Reverse(o.nodes)
		if diff := cmp.Diff(want, o.ask(t, q)[0]); diff != "" {
			t.Errorf("in another order:\n%s", diff)
		}
	})
}
