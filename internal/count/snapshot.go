package count

import (
	"maps"
	"slices"
)

// World is everything one pass looks at.
type World struct {
	// Pods may hold pods that do not count; Take leaves them out.
	Pods []*Pod
	// Nodes is every node of the cluster. Without NodesKnown it is empty and
	// means nothing: rows then follow the pods alone.
	Nodes      []*Node
	NodesKnown bool
	Observed   Observed
}

// Observed names the resourceVersion of every store a pass was computed from,
// "" for a store that was not read. Two of them compare only within one
// resource.
type Observed struct {
	Pods  string
	Nodes string
}

// Snapshot is the answer of one pass. It is never changed after Take.
type Snapshot struct {
	Observed Observed
	// NodesKnown is false when nodes were not watched. Capacity, Allocatable,
	// Free, Overcommitted and Orphaned are then 0 and mean nothing.
	NodesKnown bool
	// Resources has a Summary for every counted resource, in the order in which
	// they were asked for, also for those that no node and no pod mentions.
	Resources []Summary
}

// Of returns the summary of a resource, an empty one if it was not counted.
func (s *Snapshot) Of(resource string) Summary {
	for _, sum := range s.Resources {
		if sum.Resource == resource {
			return sum
		}
	}
	return Summary{Resource: resource}
}

// Summary is all there is to say about one resource. Numbers are devices.
type Summary struct {
	Resource string
	Totals
	// Nodes has a row for each node where capacity, allocatable or requested is
	// above zero (N1), sorted by name.
	Nodes []Row
	// Orphaned is requested by pods bound to a node that does not exist. It is
	// in no row and in no total (R3).
	Orphaned int64
	// Pending is asked for by pods that wait for a node (P1), PendingPods their
	// number.
	Pending     int64
	PendingPods int
}

// Totals sums rows. Free and Overcommitted are summed per node: eight free
// devices on one node do not make up for one too many on another.
type Totals struct {
	Capacity      int64
	Allocatable   int64
	Requested     int64
	Free          int64
	Overcommitted int64
}

// Row is one node's numbers for one resource.
type Row struct {
	Node        string
	Capacity    int64
	Allocatable int64
	// Requested is what kube-scheduler's NodeInfo.Requested holds (R1, R6).
	Requested int64
	// Free is what the node could still give, never negative (N2).
	Free int64
	// Overcommitted is what is requested beyond allocatable: devices that turned
	// unhealthy, or a device plugin that went away, under running pods (N2).
	Overcommitted int64
}

// Take counts the world. The order of the input makes no difference.
func Take(w World, gpus Resources) *Snapshot {
	snap := &Snapshot{Observed: w.Observed, NodesKnown: w.NodesKnown, Resources: make([]Summary, 0, len(gpus))}
	for _, resource := range gpus {
		snap.Resources = append(snap.Resources, summarize(w, resource))
	}
	return snap
}

func summarize(w World, resource string) Summary {
	sum := Summary{Resource: resource}
	rows := make(map[string]*Row)
	for _, n := range w.Nodes {
		rows[n.Name] = &Row{
			Node:        n.Name,
			Capacity:    n.Capacity.Of(resource),
			Allocatable: n.Allocatable.Of(resource),
		}
	}
	for _, p := range w.Pods {
		amount := p.Requests.Of(resource)
		switch {
		case amount == 0:
		case p.Pending():
			sum.Pending = add(sum.Pending, amount)
			sum.PendingPods++
		case p.Bound():
			if row := rowOf(rows, p.Node, !w.NodesKnown); row != nil {
				row.Requested = add(row.Requested, amount)
			} else {
				sum.Orphaned = add(sum.Orphaned, amount)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		row := rows[name]
		if row.Capacity == 0 && row.Allocatable == 0 && row.Requested == 0 {
			continue
		}
		if w.NodesKnown {
			row.Free = max(0, row.Allocatable-row.Requested)
			row.Overcommitted = max(0, row.Requested-row.Allocatable)
		}
		sum.Nodes = append(sum.Nodes, *row)
		sum.include(*row)
	}
	return sum
}

// rowOf finds a node's row, or makes one if it may.
func rowOf(rows map[string]*Row, node string, create bool) *Row {
	row := rows[node]
	if row == nil && create {
		row = &Row{Node: node}
		rows[node] = row
	}
	return row
}

func (t *Totals) include(r Row) {
	t.Capacity = add(t.Capacity, r.Capacity)
	t.Allocatable = add(t.Allocatable, r.Allocatable)
	t.Requested = add(t.Requested, r.Requested)
	t.Free = add(t.Free, r.Free)
	t.Overcommitted = add(t.Overcommitted, r.Overcommitted)
}
