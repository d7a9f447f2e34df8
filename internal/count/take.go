package count

import (
	"cmp"
	"maps"
	"slices"
)

// Take counts the world. The order of the input makes no difference.
func Take(w World) *Snapshot {
	t := tally{world: w, rows: make(map[rowKey]*Row), sums: make(map[string]*sum), nodes: make(map[string]*Node, len(w.Nodes))}
	for _, n := range w.Nodes {
		t.node(n)
	}
	for _, p := range w.Pods {
		t.pod(p)
	}
	return t.snapshot()
}

// tally is a count in the making.
type tally struct {
	world World
	nodes map[string]*Node
	rows  map[rowKey]*Row
	sums  map[string]*sum
}

type rowKey struct {
	node, resource string
	source         Source
}

// sum is a Summary in the making.
type sum struct {
	Summary
	models     map[string]*part
	namespaces map[string]*Share
	priorities map[string]*Share
	reasons    map[Wait]*Reason
	shapes     map[int64]int
	whole      part
}

func (t *tally) node(n *Node) {
	t.nodes[n.Name] = n
	for _, a := range n.Capacity {
		t.row(n.Name, a.Resource).Capacity = a.Value
	}
	for _, a := range n.Allocatable {
		t.row(n.Name, a.Resource).Allocatable = a.Value
	}
}

// row finds or makes a row of a device plugin.
func (t *tally) row(node, resource string) *Row {
	key := rowKey{node, resource, DevicePlugin}
	row := t.rows[key]
	if row == nil {
		row = &Row{Node: node, Resource: resource, Source: DevicePlugin, Model: UnknownModel}
		if n := t.nodes[node]; n != nil {
			row.Model, row.States = n.Model(resource), n.States
			if replicas := n.Replicas(resource); replicas > 1 {
				row.Replicas = replicas
			}
		}
		t.rows[key] = row
	}
	return row
}

func (t *tally) pod(p *Pod) {
	for _, a := range p.Requests {
		switch {
		case p.Pending():
			t.sum(a.Resource).waits(p, a.Value)
		case !p.Bound():
		case t.world.NodesKnown && t.nodes[p.Node] == nil:
			sum := t.sum(a.Resource)
			sum.Orphaned = add(sum.Orphaned, a.Value)
		default:
			row := t.row(p.Node, a.Resource)
			row.Requested = add(row.Requested, a.Value)
			t.sum(a.Resource).holds(p, a.Value)
		}
	}
}

func (t *tally) sum(resource string) *sum {
	s := t.sums[resource]
	if s == nil {
		s = &sum{
			Summary:    Summary{Resource: resource},
			models:     make(map[string]*part),
			namespaces: make(map[string]*Share),
			priorities: make(map[string]*Share),
			reasons:    make(map[Wait]*Reason),
			shapes:     make(map[int64]int),
		}
		t.sums[resource] = s
	}
	return s
}

func (t *tally) snapshot() *Snapshot {
	snap := &Snapshot{Observed: t.world.Observed, NodesKnown: t.world.NodesKnown}
	for _, row := range t.rows {
		if row.Capacity == 0 && row.Allocatable == 0 && row.Requested == 0 {
			continue
		}
		if t.world.NodesKnown {
			row.derive()
		}
		snap.Rows = append(snap.Rows, *row)
		t.sum(row.Resource).include(*row)
	}
	slices.SortFunc(snap.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Source, b.Source))
	})
	for _, resource := range slices.Sorted(maps.Keys(t.sums)) {
		snap.Summaries = append(snap.Summaries, t.sums[resource].finish())
	}
	return snap
}

// derive fills in what follows from the other numbers (N2, N3).
func (r *Row) derive() {
	r.Free = max(0, r.Allocatable-r.Requested)
	r.Overcommitted = max(0, r.Requested-r.Allocatable)
	if len(r.States) == 0 {
		r.UsableFree = r.Free
	}
}

func (s *sum) include(r Row) {
	model := s.models[r.Model]
	if model == nil {
		model = &part{}
		s.models[r.Model] = model
	}
	model.include(r)
	s.whole.include(r)
}

func (s *sum) finish() Summary {
	out := s.Summary
	out.Numbers, out.Nodes, out.Fit = s.whole.Numbers, s.whole.nodes, s.whole.fit()
	for _, name := range slices.Sorted(maps.Keys(s.models)) {
		part := s.models[name]
		out.Models = append(out.Models, Model{Name: name, Nodes: part.nodes, Numbers: part.Numbers, Fit: part.fit()})
	}
	out.Namespaces = sortedShares(s.namespaces)
	out.Priorities = bandShares(s.priorities)
	s.demand(&out.Pending)
	return out
}
