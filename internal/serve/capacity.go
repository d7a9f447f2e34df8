package serve

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// number is one of count.Numbers, at each of the three levels. They have names of
// their own, so that a sum over one name never adds a total to its parts.
type number struct {
	of         func(count.Numbers) int64
	needsNodes bool // it means nothing when nodes are not watched

	cluster, model, node *prometheus.Desc
}

func newNumber(name, help string, needsNodes bool, of func(count.Numbers) int64) number {
	return number{
		of: of, needsNodes: needsNodes,
		cluster: newDesc(name, help, "resource"),
		model:   newDesc("model_"+name, help, "resource", "model"),
		node:    newDesc("node_"+name, help, "node", "resource", "source", "model"),
	}
}

var numbers = []number{
	newNumber("requested_devices", "Devices that kube-scheduler takes for taken (R1 to R11); of DRA, those that claims hold (D3).",
		false, func(n count.Numbers) int64 { return n.Requested }),
	newNumber("capacity_devices", "All devices, healthy or not (N1).",
		true, func(n count.Numbers) int64 { return n.Capacity }),
	newNumber("allocatable_devices", "Healthy devices (N1).",
		true, func(n count.Numbers) int64 { return n.Allocatable }),
	newNumber("free_devices", "What nodes could still give, never negative on any of them (N2).",
		true, func(n count.Numbers) int64 { return n.Free }),
	newNumber("usable_free_devices", "Free devices on nodes that take pods: ready, not cordoned, not tainted (N3).",
		true, func(n count.Numbers) int64 { return n.UsableFree }),
	newNumber("overcommitted_devices", "Requested beyond allocatable on the same node: devices or their plugin went away under pods (N2).",
		true, func(n count.Numbers) int64 { return n.Overcommitted }),
}

const (
	placeableHelp   = "How many pods that ask for size devices each could start now. Sizes are alternatives: never add them."
	strandedHelp    = "Free devices that would be left over once all placeable pods of that size had started. Sizes are alternatives: never add them."
	largestFreeHelp = "The most usable free devices on one node: the largest pod that could start now."
	nodesHelp       = "Nodes that have such devices, or on which some are requested (N1)."
)

var (
	nodes          = newDesc("nodes", nodesHelp, "resource")
	orphaned       = newDesc("orphaned_devices", "Requested by pods whose node does not exist; in no other number (R3).", "resource")
	pendingDevices = newDesc("pending_devices", "Devices asked for by pods that wait for a node, by why they wait (P1).", "resource", "reason")
	pendingPods    = newDesc("pending_pods", "Pods that ask for devices and wait for a node, by why they wait (P1).", "resource", "reason")

	// Demand by model is split in two: a model's, and what is nobody's.
	modelPending = newDesc("model_pending_devices", "Devices asked for by waiting pods that name this model and no other that there is (P2).", "resource", "model")
	otherPending = newDesc("pending_other_devices",
		"All other devices asked for by waiting pods: they name any model, several that there are, or only absent ones, such as no node has (P2).", "resource", "models")

	clusterFit = fitDescs("", "resource")
	modelNodes = newDesc("model_nodes", nodesHelp, "resource", "model")
	modelFit   = fitDescs("model_", "resource", "model")

	draState   = newDesc("dra_state", "1 for the state that dynamic resource allocation is in, 0 for the others. Only synced has numbers.", "state")
	draPools   = newDesc("dra_uncounted_pools", "Pools with devices that are in no number, because they are incomplete or not on one node (D4).")
	draClasses = newDesc("dra_uncounted_classes", "Device classes whose selectors cannot be evaluated, on some devices or on all (D5).")
)

type fit struct{ placeable, stranded, largestFree *prometheus.Desc }

func fitDescs(level string, labels ...string) fit {
	sized := append(slices.Clip(labels), "size")
	return fit{
		placeable:   newDesc(level+"placeable_pods", placeableHelp, sized...),
		stranded:    newDesc(level+"stranded_devices", strandedHelp, sized...),
		largestFree: newDesc(level+"largest_free_devices", largestFreeHelp, labels...),
	}
}

var draStates = []count.DRAState{count.DRAAbsent, count.DRAUnreachable, count.DRAForbidden, count.DRASyncing, count.DRASynced}

func describeCapacity(ch chan<- *prometheus.Desc) {
	for _, n := range numbers {
		ch <- n.cluster
		ch <- n.model
		ch <- n.node
	}
	for _, f := range []fit{clusterFit, modelFit} {
		ch <- f.placeable
		ch <- f.stranded
		ch <- f.largestFree
	}
	for _, desc := range []*prometheus.Desc{nodes, orphaned, pendingDevices, pendingPods, modelPending, otherPending, modelNodes, draState, draPools, draClasses} {
		ch <- desc
	}
}

// capacity shows a snapshot.
func (s sink) capacity(snap *count.Snapshot, perNode bool) {
	for i := range snap.Summaries {
		s.summary(&snap.Summaries[i], snap.NodesKnown)
	}
	if perNode {
		for i := range snap.Rows {
			row := &snap.Rows[i]
			for _, n := range numbers {
				if snap.NodesKnown || !n.needsNodes {
					s.set(n.node, float64(n.of(row.Numbers)), row.Node, row.Resource, string(row.Source), row.Model)
				}
			}
		}
	}
	if snap.DRA != nil {
		s.dra(snap.DRA)
	}
}

func (s sink) summary(sum *count.Summary, nodesKnown bool) {
	s.pending(sum.Resource, sum.Pending)
	s.set(nodes, float64(sum.Nodes), sum.Resource)
	for _, n := range numbers {
		if !nodesKnown && n.needsNodes {
			continue
		}
		s.set(n.cluster, float64(n.of(sum.Numbers)), sum.Resource)
		for _, model := range sum.Models {
			s.set(n.model, float64(n.of(model.Numbers)), sum.Resource, model.Name)
		}
	}
	for _, model := range sum.Models {
		s.set(modelNodes, float64(model.Nodes), sum.Resource, model.Name)
	}
	if !nodesKnown {
		return
	}
	s.set(orphaned, float64(sum.Orphaned), sum.Resource)
	s.fit(clusterFit, sum.Fit, sum.Resource)
	for _, model := range sum.Models {
		s.fit(modelFit, model.Fit, sum.Resource, model.Name)
		s.set(modelPending, float64(model.Pending), sum.Resource, model.Name)
	}
	for models, devices := range map[string]int64{"any": sum.Pending.AnyModel, "several": sum.Pending.SeveralModels, "absent": sum.Pending.AbsentModel} {
		s.set(otherPending, float64(devices), sum.Resource, models)
	}
}

// pending shows every reason, so that a graph falls to zero where demand ends.
func (s sink) pending(resource string, pending count.Pending) {
	for _, wait := range count.Waits {
		var of count.Reason
		for _, reason := range pending.Reasons {
			if reason.Wait == wait {
				of = reason
			}
		}
		s.set(pendingDevices, float64(of.Devices), resource, wait.String())
		s.set(pendingPods, float64(of.Pods), resource, wait.String())
	}
}

func (s sink) fit(descs fit, f count.Fit, labels ...string) {
	s.set(descs.largestFree, float64(f.LargestFree), labels...)
	for _, size := range f.Sizes {
		sized := append(slices.Clip(labels), strconv.FormatInt(size.Devices, 10))
		s.set(descs.placeable, float64(size.Placeable), sized...)
		s.set(descs.stranded, float64(size.Stranded), sized...)
	}
}

func (s sink) dra(status *count.DRAStatus) {
	for _, state := range draStates {
		s.set(draState, oneIf(state == status.State), string(state))
	}
	s.set(draPools, float64(len(status.Pools)))
	s.set(draClasses, float64(len(status.Classes)))
}
