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
	dra, done := t.beginDRA()
	defer done()
	for _, p := range w.Pods {
		t.pod(p)
	}
	if dra != nil {
		dra.count()
	}
	return t.snapshot()
}

// tally is a count in the making.
type tally struct {
	world World
	nodes map[string]*Node
	rows  map[rowKey]*Row
	sums  map[string]*sum

	draStatus *DRAStatus
	implicit  map[string]string // what a class counts as
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
	choices    []choice // of pods that name models
	anyModel   int64    // asked for by all others
	sources    map[Source]*part
	whole      part
}

func (t *tally) node(n *Node) {
	t.nodes[n.Name] = n
	for _, a := range n.Capacity {
		t.row(rowKey{n.Name, a.Resource, DevicePlugin}).Capacity = a.Value
	}
	for _, a := range n.Allocatable {
		t.row(rowKey{n.Name, a.Resource, DevicePlugin}).Allocatable = a.Value
	}
}

// row finds or makes a row.
func (t *tally) row(key rowKey) *Row {
	row := t.rows[key]
	if row == nil {
		row = &Row{Node: key.node, Resource: key.resource, Source: key.source, Model: UnknownModel}
		if n := t.nodes[key.node]; n != nil {
			row.Model, row.States = n.Model(key.resource), n.States
			if replicas := n.Replicas(key.resource); replicas > 1 && key.source == DevicePlugin {
				row.Replicas = replicas
			}
		}
		t.rows[key] = row
	}
	return row
}

func (t *tally) pod(p *Pod) {
	for _, a := range t.asks(p) {
		switch {
		case p.Pending():
			t.sum(a.Resource).waits(p, a.Value)
		case !p.Bound():
		case p.servedByDRA(a.Resource):
			t.served(p, a)
		case t.world.NodesKnown && t.nodes[p.Node] == nil:
			sum := t.sum(a.Resource)
			sum.Orphaned = add(sum.Orphaned, a.Value)
		default:
			t.holds(p, a, DevicePlugin)
		}
	}
}

// holds books what a bound pod requests.
func (t *tally) holds(p *Pod, a Amount, source Source) {
	row := t.row(rowKey{p.Node, a.Resource, source})
	row.Requested = add(row.Requested, a.Value)
	t.sum(a.Resource).holds(p, a.Value)
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
			sources:    make(map[Source]*part),
		}
		t.sums[resource] = s
	}
	return s
}

func (t *tally) snapshot() *Snapshot {
	snap := &Snapshot{Observed: t.world.Observed, Complete: cmp.Or(t.world.Complete, t.world.Observed), NodesKnown: t.world.NodesKnown, DRA: t.draStatus}
	for _, row := range t.rows {
		row.derive(t.world.NodesKnown)
		if row.Capacity == 0 && row.Allocatable == 0 && row.Requested == 0 || t.phantom(row) {
			continue
		}
		snap.Rows = append(snap.Rows, *row)
	}
	slices.SortFunc(snap.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Source, b.Source))
	})
	for _, row := range snap.Rows {
		t.sum(row.Resource).include(row)
	}
	for _, resource := range slices.Sorted(maps.Keys(t.sums)) {
		snap.Summaries = append(snap.Summaries, t.sums[resource].finish(t.world.NodesKnown))
	}
	return snap
}

// derive fills in what follows from the other numbers (N2, N3). Of DRA, what is
// free has been counted device by device (D4).
func (r *Row) derive(nodesKnown bool) {
	switch {
	case !nodesKnown:
		r.Numbers, r.Claimed, r.Blocked = Numbers{Requested: r.Requested}, 0, 0
	case r.Source == DevicePlugin:
		charged := add(r.Requested, r.Claimed)
		r.Free = max(0, r.Allocatable-charged)
		r.Overcommitted = max(0, charged-r.Allocatable)
	}
	if len(r.States) == 0 {
		r.UsableFree = r.Free
	}
}

// include adds a row. Rows come in their order, in which those of one node are
// next to each other.
func (s *sum) include(r Row) {
	model, source := s.models[r.Model], s.sources[r.Source]
	if model == nil {
		model = &part{}
		s.models[r.Model] = model
	}
	if source == nil {
		source = &part{}
		s.sources[r.Source] = source
	}
	model.include(r)
	source.include(r)
	s.whole.include(r)
}

func (s *sum) finish(nodesKnown bool) Summary {
	out := s.Summary
	out.Numbers, out.Nodes, out.Fit = s.whole.Numbers, s.whole.nodes, s.whole.fit()
	if s.sources[DynamicResources] != nil {
		for _, source := range slices.Sorted(maps.Keys(s.sources)) {
			part := s.sources[source]
			out.Sources = append(out.Sources, SourcePart{Source: source, Nodes: part.nodes, Numbers: part.Numbers})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.models)) {
		part := s.models[name]
		out.Models = append(out.Models, Model{Name: name, Nodes: part.nodes, Numbers: part.Numbers, Fit: part.fit()})
	}
	out.Namespaces = sortedShares(s.namespaces)
	out.Priorities = bandShares(s.priorities)
	s.demand(&out.Pending)
	if nodesKnown {
		s.choose(&out.Pending, out.Models)
	}
	return out
}
