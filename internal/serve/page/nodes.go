package page

import (
	"cmp"
	"net/url"
	"slices"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// nodes are those that somebody has asked for.
type nodes struct {
	api.Selection
	Sort      string
	Resources []string
	Models    []string
	Columns   []column
	Rows      []count.Row
	Pager     pager
	Field     field
	// Filtered is whether there are others that were not asked for.
	Filtered bool
}

var stateChoices = []choice{
	{"Usable", "takes pods"}, {"Free", "has usable free"}, {"Full", "nothing free"}, {"Overcommitted", "overcommitted"},
	{string(count.NotReady), "not ready"}, {string(count.SchedulingDisabled), "cordoned"}, {string(count.Tainted), "tainted"},
}

func nodesPage(v api.View, p *api.Parameters) Page {
	s, sort := api.ReadSelection(p), cmp.Or(p.Word("sort", sortWords...), "node")
	s.Resource = resourceOf(v.Snapshot, s.Resource)
	// same is the address of this page but for one parameter.
	same := func(change, to string) string {
		q := url.Values{"resource": {p.Text("resource")}, "model": {s.Model}, "state": {s.State}, "contains": {s.Contains}, "sort": {p.Text("sort")}}
		q.Set(change, to)
		return address("nodes", q)
	}
	rows := slices.Clone(s.Rows(v.Snapshot))
	sortRows(rows, sort)
	n := nodes{
		Selection: s, Sort: sort, Resources: resources(v.Snapshot), Columns: columns(sort, func(by string) string { return same("sort", by) }),
		Field: fieldFor(v.Snapshot, s, sort, len(rows)), Filtered: len(rows) < len(api.Selection{Resource: s.Resource}.Rows(v.Snapshot)),
	}
	models, _ := firstOf(v.Snapshot.Of(s.Resource).Models)
	for _, m := range models {
		n.Models = append(n.Models, m.Name)
	}
	n.Rows, n.Pager = turn(p, rows, func(page string) string { return same("page", page) })
	return Page{Body: n.body()}
}

func (n nodes) body() g.Node {
	return g.Group{
		n.filter(),
		card("field", "Devices, by who holds them", n.Field.draw()),
		liveCard("rows", Plural(n.Pager.Total, "node")+" with "+n.Resource+either(n.Filtered, ", of those asked for", ""),
			wide("Nodes",
				heads(g.Map(n.Columns, column.draw), head("State"), head("In use")),
				h.TBody(g.Map(n.Rows, nodeRow), g.If(len(n.Rows) == 0, remark(9, "There is none.")))),
			n.Pager.draw()),
	}
}

func (n nodes) filter() g.Node {
	return filter("./nodes",
		g.If(len(n.Resources) > 1, selection("resource", "Resource", oneOf(n.Resource, choicesOf(n.Resources)))),
		selection("model", "Model", anyOf(n.Model, choicesOf(n.Models))),
		selection("state", "State", anyOf(n.State, stateChoices)),
		fieldOf("contains", "Name contains", h.Input(h.ID("contains"), h.Name("contains"), h.Value(n.Contains), h.AutoComplete("off"))),
		g.If(n.Sort != "node", hidden("sort", n.Sort)),
		h.Button(g.Text("Show")),
		g.If(n.Filtered, to(address("nodes", url.Values{"resource": {n.Resource}}), "Show all")),
	)
}

func nodeRow(r count.Row) g.Node {
	return h.Tr(
		rowHead(to(address("node", url.Values{"name": {r.Node}}), r.Node), byDRA(r)), h.Td(g.Text(r.Model), shared(r)),
		numberCells(r.Allocatable, r.Requested, r.Free, r.UsableFree), badCell(r.Overcommitted),
		h.Td(states(r.States)), barCell(r.Numbers))
}
