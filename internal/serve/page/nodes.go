package page

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// field says which nodes the script draws as cells.
type field struct {
	// Query is for /api/v1/nodes.
	Query string
	// Sort is as in the table.
	Sort string
	// Nodes is how many rows there are to draw.
	Nodes int
	// Holders are the namespaces that have a colour of their own.
	Holders []holder
}

// holder is a namespace and its colour, from 1.
type holder struct {
	Name   string
	Colour int
}

func fieldOf(snap *count.Snapshot, s api.Selection, sort string) field {
	query := url.Values{"holders": {"true"}}
	for name, value := range map[string]string{"node": s.Node, "resource": s.Resource, "model": s.Model, "state": s.State, "contains": s.Contains} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return field{Query: query.Encode(), Sort: sort, Nodes: len(s.Rows(snap)), Holders: holders(snap.Of(s.Resource), nil)}
}

// colours is how many there are to tell namespaces apart by; more could not be.
const colours = 8

// holders gives the namespaces that hold the most a colour. It follows from the name
// where that is possible, so that a namespace keeps it while others come and go. If
// only is given, others are left out.
func holders(sum count.Summary, only map[string]bool) []holder {
	shares := slices.DeleteFunc(slices.Clone(sum.Namespaces), func(s count.Share) bool {
		return s.Requested <= 0 || only != nil && !only[s.Name]
	})
	slices.SortStableFunc(shares, func(a, b count.Share) int { return cmp.Compare(b.Requested, a.Requested) })
	shares = shares[:min(len(shares), colours)]
	slices.SortFunc(shares, func(a, b count.Share) int { return cmp.Compare(a.Name, b.Name) })
	var taken [colours]bool
	var out []holder
	for _, share := range shares {
		at := 0
		for _, c := range []byte(share.Name) {
			at = (at*31 + int(c)) % colours
		}
		for taken[at] {
			at = (at + 1) % colours
		}
		taken[at] = true
		out = append(out, holder{share.Name, at + 1})
	}
	return out
}

type nodesData struct {
	api.Selection
	Sort       string
	Resources  []string
	Models     []string
	States     []choice
	Sorts      []choice
	NodesKnown bool
	Columns    []column
	Rows       []nodeRow
	Pager      pager
	Field      field
	// Filtered is whether there are others that were not asked for.
	Filtered bool
}

// choice is one of a list to choose from.
type choice struct{ Value, Label string }

var stateChoices = []choice{
	{"Usable", "takes pods"}, {"Free", "has usable free"}, {"Full", "nothing free"}, {"Overcommitted", "overcommitted"},
	{string(count.NotReady), "not ready"}, {string(count.SchedulingDisabled), "cordoned"}, {string(count.Tainted), "tainted"},
}

// column is one that the table can be sorted by.
type column struct {
	Label, Address string
	Number         bool
	// Order is ascending, descending, or "" if the table is not sorted by it.
	Order string
}

// order is a way to sort rows. Of numbers the largest come first.
type order struct {
	name, label string
	number      bool
	compare     func(a, b *count.Row) int
}

var orders = []order{
	{"node", "Node", false, func(a, b *count.Row) int { return cmp.Compare(a.Node, b.Node) }},
	{"model", "Model", false, func(a, b *count.Row) int { return cmp.Compare(a.Model, b.Model) }},
	{"allocatable", "Allocatable", true, func(a, b *count.Row) int { return cmp.Compare(a.Allocatable, b.Allocatable) }},
	{"requested", "Requested", true, func(a, b *count.Row) int { return cmp.Compare(a.Requested, b.Requested) }},
	{"free", "Free", true, func(a, b *count.Row) int { return cmp.Compare(a.Free, b.Free) }},
	{"usable", "Usable", true, func(a, b *count.Row) int { return cmp.Compare(a.UsableFree, b.UsableFree) }},
	{"over", "Over", true, func(a, b *count.Row) int { return cmp.Compare(a.Overcommitted, b.Overcommitted) }},
}

// sortWords are what can be asked for: the name of an order, with - for the other way
// round.
var sortWords = func() (words []string) {
	for _, o := range orders {
		words = append(words, o.name, "-"+o.name)
	}
	return words
}()

// nodeRow is a line of the table.
type nodeRow struct {
	count.Row
	Bar     bar
	Address string
}

func nodes(_ *Page, v api.View, p *api.Parameters) any {
	s, sort := api.ReadSelection(p), cmp.Or(p.Word("sort", sortWords...), "node")
	s.Resource = resourceOf(v.Snapshot, s.Resource)
	query := func(change string, to string) url.Values {
		q := url.Values{"resource": {p.Text("resource")}, "model": {s.Model}, "state": {s.State}, "contains": {s.Contains}, "sort": {p.Text("sort")}}
		q.Set(change, to)
		return q
	}
	rows := slices.Clone(s.Rows(v.Snapshot))
	sortRows(rows, sort)
	all := len(api.Selection{Resource: s.Resource}.Rows(v.Snapshot))
	d := nodesData{
		Selection: s, Sort: sort, States: stateChoices, NodesKnown: v.Snapshot.NodesKnown,
		Field: fieldOf(v.Snapshot, s, sort), Filtered: len(rows) < all,
	}
	for _, sum := range v.Snapshot.Summaries {
		d.Resources = append(d.Resources, sum.Resource)
	}
	for i, m := range v.Snapshot.Of(s.Resource).Models {
		if i < perPage {
			d.Models = append(d.Models, m.Name)
		}
	}
	for _, o := range orders {
		c := column{Label: o.label, Number: o.number}
		next := o.name
		if o.number {
			next = "-" + next
		}
		switch sort {
		case o.name:
			c.Order, next = "ascending", "-"+o.name
		case "-" + o.name:
			c.Order, next = "descending", o.name
		}
		c.Address = address("nodes", query("sort", next))
		d.Columns = append(d.Columns, c)
	}
	rows, d.Pager = turn(p, rows, func(page string) string { return address("nodes", query("page", page)) })
	for _, row := range rows {
		d.Rows = append(d.Rows, nodeRow{row, barOf(row.Numbers), address("node", url.Values{"name": {row.Node}})})
	}
	return d
}

// sortRows keeps the order of the snapshot among equals.
func sortRows(rows []count.Row, by string) {
	name, backwards := strings.CutPrefix(by, "-")
	for _, o := range orders {
		if o.name == name {
			slices.SortStableFunc(rows, func(a, b count.Row) int {
				if backwards {
					return o.compare(&b, &a)
				}
				return o.compare(&a, &b)
			})
		}
	}
}

type nodeData struct {
	Name     string
	Rows     []nodeRow
	States   []count.State
	Pods     []podRow
	MorePods int
	Field    field
}

// podRow is a line of a table of pods.
type podRow struct {
	*count.Pod
	Name    string
	Address string // of what the line leads to
	Why     string
	Devices string // by devices alone
}

func podRowOf(p *count.Pod) podRow {
	_, name, _ := strings.Cut(p.Key, "/")
	return podRow{Pod: p, Name: name}
}

// here are the namespaces that hold devices on a node.
func here(rows []count.Row, pods []*count.Pod) map[string]bool {
	namespaces := make(map[string]bool)
	for _, holders := range count.Holders(rows, pods) {
		for _, holder := range holders {
			namespaces[holder.Namespace] = true
		}
	}
	return namespaces
}

// maxPodRows is how many pods a node's page has at most. The kubelet takes 110 unless
// told otherwise.
const maxPodRows = 500

func node(page *Page, v api.View, p *api.Parameters) any {
	d := nodeData{Name: p.Text("name")}
	page.Title = "Node " + d.Name
	rows := api.Selection{Node: d.Name}.Rows(v.Snapshot)
	var pods []*count.Pod
	if d.Name != "" {
		pods = api.PodSelection{Node: d.Name}.Pods(v.Pods)
	}
	if d.Name == "" || len(rows) == 0 && len(pods) == 0 {
		page.Title = "No such node"
		return trouble{"There is no node of this name that has GPUs or on which some are requested.", nil}
	}
	for _, row := range rows {
		d.States = row.States
		d.Rows = append(d.Rows, nodeRow{Row: row, Bar: barOf(row.Numbers), Address: address("nodes", url.Values{"resource": {row.Resource}, "model": {row.Model}})})
	}
	for i, pod := range pods {
		if i == maxPodRows {
			d.MorePods = len(pods) - maxPodRows
			break
		}
		d.Pods = append(d.Pods, podRowOf(pod))
	}
	if len(rows) > 0 {
		d.Field = fieldOf(v.Snapshot, api.Selection{Node: d.Name}, "")
		d.Field.Holders = holders(v.Snapshot.Of(rows[0].Resource), here(rows, pods))
	}
	return d
}
