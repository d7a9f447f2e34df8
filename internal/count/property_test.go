package count_test

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// recount counts pods without records and without anything else of the package:
// requested by node and resource, orphaned under node "" and pending under "?".
func recount(raw rawWorld) map[[2]string]*big.Int {
	exists := map[string]bool{}
	for _, n := range raw.nodes {
		exists[n.Name] = true
	}
	sums := map[[2]string]*big.Int{}
	for _, p := range raw.pods {
		where := p.Spec.NodeName
		switch {
		case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
			continue
		case where == "" && p.DeletionTimestamp != nil:
			continue
		case where == "":
			where = "?"
		case raw.nodesKnown && !exists[where]:
			where = ""
		}
		requests := helpers.PodRequests(p.DeepCopy(), helpers.PodResourcesOptions{
			UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
		})
		for name, q := range requests {
			if !isGPU(string(name)) {
				continue
			}
			key := [2]string{where, string(name)}
			if sums[key] == nil {
				sums[key] = new(big.Int)
			}
			value := big.NewInt(q.Value())
			if q.CmpInt64(math.MaxInt64) > 0 {
				value.SetInt64(math.MaxInt64) // R11; Value would wrap
			}
			sums[key].Add(sums[key], value)
		}
	}
	return sums
}

func isGPU(name string) bool {
	switch name {
	case "nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe",
		"habana.ai/gaudi", "google.com/tpu", "aws.amazon.com/neuron":
		return true
	}
	return strings.HasPrefix(name, "nvidia.com/mig-") && name != "nvidia.com/mig-"
}

// saturated is R11.
func saturated(n *big.Int) int64 {
	switch {
	case n == nil:
		return 0
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

func checkRecount(raw rawWorld, t taken) error {
	if belowZero(t.world) {
		return nil // a sum that saturates on its way depends on the way
	}
	s, want := t.snapshot, recount(raw)
	got := map[[2]string]int64{}
	for _, r := range s.Rows {
		got[[2]string{r.Node, r.Resource}] += r.Requested
	}
	for _, sum := range s.Summaries {
		got[[2]string{"", sum.Resource}] = sum.Orphaned
		got[[2]string{"?", sum.Resource}] = sum.Pending.Devices
	}
	for key, sum := range want {
		if got[key] != saturated(sum) {
			return fmt.Errorf("%s on %q: %d, recounted %s", key[1], key[0], got[key], sum)
		}
	}
	for key, n := range got {
		if n != 0 && want[key] == nil {
			return fmt.Errorf("%s on %q: %d, recounted nothing", key[1], key[0], n)
		}
	}
	return nil
}

// checkRows: N1 to N3.
func checkRows(s *count.Snapshot) error {
	for i, r := range s.Rows {
		if i > 0 && cmp.Or(cmp.Compare(s.Rows[i-1].Node, r.Node), cmp.Compare(s.Rows[i-1].Resource, r.Resource), cmp.Compare(s.Rows[i-1].Source, r.Source)) >= 0 {
			return fmt.Errorf("row %d is not after the one before it", i)
		}
		free, over := max(0, r.Allocatable-r.Requested), max(0, r.Requested-r.Allocatable)
		usable := free
		if len(r.States) > 0 {
			usable = 0
		}
		if !s.NodesKnown {
			free, over, usable = 0, 0, 0
		}
		if r.Free != free || r.Overcommitted != over || r.UsableFree != usable {
			return fmt.Errorf("row %+v: want %d free, %d usable, %d overcommitted", r, free, usable, over)
		}
		if r.Capacity == 0 && r.Allocatable == 0 && r.Requested == 0 {
			return fmt.Errorf("row %+v has nothing to say", r)
		}
	}
	return nil
}

// checkSums: every total is the sum of its parts, whichever way it is cut.
func checkSums(t taken) error {
	if belowZero(t.world) {
		return nil
	}
	for _, sum := range t.snapshot.Summaries {
		var rows, models []count.Numbers
		for _, r := range t.snapshot.Rows {
			if r.Resource == sum.Resource {
				rows = append(rows, r.Numbers)
			}
		}
		modelNodes, histogram := 0, 0
		for _, m := range sum.Models {
			models = append(models, m.Numbers)
			modelNodes += m.Nodes
		}
		for _, b := range sum.Fit.Histogram {
			histogram += b.Nodes
		}
		for what, got := range map[string]count.Numbers{"rows": total(rows), "models": total(models)} {
			if diff := gocmp.Diff(got, sum.Numbers); diff != "" {
				return fmt.Errorf("%s: total (-sum of %s +got):\n%s", sum.Resource, what, diff)
			}
		}
		if sum.Nodes != len(rows) || modelNodes != len(rows) || histogram != len(rows) {
			return fmt.Errorf("%s: %d nodes, %d by model, %d by free devices, %d rows", sum.Resource, sum.Nodes, modelNodes, histogram, len(rows))
		}
		if err := firstOf(func() error { return checkDemand(sum, t.world.NodesKnown) }, func() error { return checkFit(sum) }); err != nil {
			return fmt.Errorf("%s: %w", sum.Resource, err)
		}
	}
	return nil
}

func total(parts []count.Numbers) (out count.Numbers) {
	sum := func(of func(count.Numbers) int64) int64 {
		n := new(big.Int)
		for _, p := range parts {
			n.Add(n, big.NewInt(of(p)))
		}
		return saturated(n)
	}
	out.Capacity = sum(func(n count.Numbers) int64 { return n.Capacity })
	out.Allocatable = sum(func(n count.Numbers) int64 { return n.Allocatable })
	out.Requested = sum(func(n count.Numbers) int64 { return n.Requested })
	out.Free = sum(func(n count.Numbers) int64 { return n.Free })
	out.UsableFree = sum(func(n count.Numbers) int64 { return n.UsableFree })
	out.Overcommitted = sum(func(n count.Numbers) int64 { return n.Overcommitted })
	return out
}

func checkDemand(sum count.Summary, nodesKnown bool) error {
	pods, reasons, shapes := 0, new(big.Int), new(big.Int)
	for _, r := range sum.Pending.Reasons {
		pods += r.Pods
		reasons.Add(reasons, big.NewInt(r.Devices))
	}
	shaped := 0
	for _, s := range sum.Pending.Shapes {
		shaped += s.Pods
		shapes.Add(shapes, new(big.Int).Mul(big.NewInt(s.Devices), big.NewInt(int64(s.Pods))))
	}
	if pods != sum.Pending.Pods || shaped != pods || saturated(reasons) != sum.Pending.Devices || saturated(shapes) != sum.Pending.Devices {
		return fmt.Errorf("pending %+v does not add up", sum.Pending)
	}
	choices := new(big.Int)
	for _, devices := range []int64{sum.Pending.AnyModel, sum.Pending.SeveralModels, sum.Pending.AbsentModel} {
		choices.Add(choices, big.NewInt(devices))
	}
	for _, m := range sum.Models {
		choices.Add(choices, big.NewInt(m.Pending))
	}
	if nodesKnown && saturated(choices) != sum.Pending.Devices || !nodesKnown && choices.Sign() != 0 {
		return fmt.Errorf("by model, pending %+v of %+v does not add up", sum.Pending, sum.Models)
	}
	for what, shares := range map[string][]count.Share{"namespaces": sum.Namespaces, "priorities": sum.Priorities} {
		requested, pending := new(big.Int), new(big.Int)
		for _, s := range shares {
			requested.Add(requested, big.NewInt(s.Requested))
			pending.Add(pending, big.NewInt(s.Pending))
		}
		if saturated(requested) != sum.Requested || saturated(pending) != sum.Pending.Devices {
			return fmt.Errorf("%s %+v do not add up to %d requested and %d pending", what, shares, sum.Requested, sum.Pending.Devices)
		}
	}
	return nil
}

func checkFit(sum count.Summary) error {
	for _, size := range sum.Fit.Sizes {
		inUse := new(big.Int).Mul(big.NewInt(size.Devices), big.NewInt(size.Placeable))
		switch {
		case sum.Free == math.MaxInt64: // saturated: the parts no longer add up
		case inUse.Cmp(big.NewInt(sum.UsableFree)) > 0:
			return fmt.Errorf("%d pods of %d do not fit into %d", size.Placeable, size.Devices, sum.UsableFree)
		case inUse.Add(inUse, big.NewInt(size.Stranded)).Cmp(big.NewInt(sum.Free)) != 0:
			return fmt.Errorf("%+v of %d free", size, sum.Free)
		}
	}
	if sum.Fit.LargestFree > sum.UsableFree {
		return fmt.Errorf("%d free on one node, %d on all", sum.Fit.LargestFree, sum.UsableFree)
	}
	return nil
}

func checkOrder(t taken) error {
	if belowZero(t.world) {
		return nil
	}
	w := t.world
	w.Pods, w.Nodes = slices.Clone(w.Pods), slices.Clone(w.Nodes)
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(w.Pods), func(i, j int) { w.Pods[i], w.Pods[j] = w.Pods[j], w.Pods[i] })
	r.Shuffle(len(w.Nodes), func(i, j int) { w.Nodes[i], w.Nodes[j] = w.Nodes[j], w.Nodes[i] })
	if diff := gocmp.Diff(t.snapshot, count.Take(w)); diff != "" {
		return fmt.Errorf("in another order:\n%s", diff)
	}
	return nil
}

// belowZero reports whether an amount is negative, which no API server accepts.
func belowZero(w count.World) bool {
	negative := func(a count.Amount) bool { return a.Value < 0 }
	for _, p := range w.Pods {
		if slices.ContainsFunc(p.Requests, negative) {
			return true
		}
	}
	for _, n := range w.Nodes {
		if slices.ContainsFunc(n.Capacity, negative) || slices.ContainsFunc(n.Allocatable, negative) {
			return true
		}
	}
	return false
}
