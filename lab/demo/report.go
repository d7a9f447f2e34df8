package demo

import (
	"cmp"
	"maps"
	"slices"
)

// Report is what the demo shows. The totals and what is requested on each node are
// the published ones; Naive is for comparison.
type Report struct {
	Requested, Allocatable, Free, Pending, Overcommitted int64
	// Naive is what a sum over all pods says.
	Naive Naive
	// Rows are in the order of the nodes' names.
	Rows []Row
}

// Naive is the sum of the containers' GPU requests over all pods, which is what a
// dashboard shows that sums kube_pod_container_resource_requests.
type Naive struct {
	Sum int64
	// Finished is the part of pods that have finished.
	Finished int64
}

// Row is a node.
type Row struct {
	Node, Model            string
	Allocatable, Requested int64
}

// free is what the node could still give.
func (r Row) free() int64 { return max(0, r.Allocatable-r.Requested) }

// node is what the API says of a node.
type node struct {
	model       string
	allocatable int64
}

func newReport(p Published, nodes map[string]node, naive Naive) Report {
	r := Report{
		Requested: p.Requested, Allocatable: p.Allocatable, Free: p.Free,
		Pending: p.Pending, Overcommitted: p.Overcommitted, Naive: naive,
	}
	for _, name := range slices.Sorted(maps.Keys(p.Rows)) {
		n := nodes[name]
		r.Rows = append(r.Rows, Row{Node: name, Model: n.model, Allocatable: n.allocatable, Requested: p.Rows[name]})
	}
	return r
}

// share is the part that is requested. A node that offers nothing is not full of
// nothing; one that has pods all the same is overfull.
func (r Row) share() float64 {
	if r.Requested == 0 {
		return 0
	}
	return float64(r.Requested) / float64(r.Allocatable) // +Inf is fine
}

// fuller orders by share. Of two equally full nodes the larger comes first, then
// the name decides, so that equal clusters look equal.
func fuller(a, b Row) int {
	return cmp.Or(
		cmp.Compare(b.share(), a.share()),
		cmp.Compare(b.Allocatable, a.Allocatable),
		cmp.Compare(a.Node, b.Node),
	)
}

// emptier orders by what is free: of two empty nodes the larger has more room.
func emptier(a, b Row) int {
	return cmp.Or(
		cmp.Compare(b.free(), a.free()),
		cmp.Compare(a.share(), b.share()),
		cmp.Compare(a.Node, b.Node),
	)
}

// overflow orders by what is requested beyond what there is.
func overflow(a, b Row) int {
	return cmp.Or(
		cmp.Compare(b.Requested-b.Allocatable, a.Requested-a.Allocatable),
		cmp.Compare(a.Node, b.Node),
	)
}

func overcommitted(r Row) bool { return r.Requested > r.Allocatable }
func hasPods(r Row) bool       { return r.Requested > 0 }
func hasRoom(r Row) bool       { return r.free() > 0 }

// first returns the first n rows in the given order, of those that are wanted.
func first(n int, rows []Row, order func(a, b Row) int, wanted func(Row) bool) []Row {
	var sorted []Row
	for _, r := range rows {
		if wanted(r) {
			sorted = append(sorted, r)
		}
	}
	slices.SortFunc(sorted, order)
	return sorted[:min(n, len(sorted))]
}

func countRows(rows []Row, is func(Row) bool) (n int) {
	for _, r := range rows {
		if is(r) {
			n++
		}
	}
	return n
}
