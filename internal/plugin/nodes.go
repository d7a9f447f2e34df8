package plugin

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

type nodesOptions struct {
	*common
	watching
	selection
	sorting[count.Row]
	model string
}

func newNodes(c *common) *cobra.Command {
	o := &nodesOptions{common: c, sorting: sorting[count.Row]{orders: rowOrders}}
	cmd := &cobra.Command{
		Use:     "nodes",
		Aliases: []string{"node", "no"},
		Short:   "Show what each node has, and what of it is free",
		Long: `Show a row for each node, GPU resource and source of devices, and the totals.

FREE is what a node could still give; USABLE is the part of that on nodes that take
pods: Ready, not cordoned and without a taint that keeps pods away. Pods of all
namespaces are counted, whatever -n says.`,
		Example: `  # where is the most room?
  kubectl gpu-summary nodes --sort-by usable

  # one model, in one pool
  kubectl gpu-summary nodes --model NVIDIA-H100-80GB-HBM3 -l pool=training

  # refreshed every 10 seconds
  kubectl gpu-summary nodes --watch --interval 10s

  # for a script, the fields of the published nodes.json
  kubectl gpu-summary nodes -o json | jq '.rows[] | select(.overcommitted > 0)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.show(cmd.Context(), o.watching, o.view) },
	}
	o.watching.addFlags(cmd)
	o.selection.addFlags(cmd, "nodes")
	o.sorting.addFlags(cmd)
	cmd.Flags().StringVar(&o.model, "model", "", "only this `model`, as the MODEL column has it")
	o.completes(cmd, "model", o.completeModels)
	return cmd
}

// rowOrders are what rows can be sorted by. Names go up, numbers down: what is asked
// for is the most of something.
var rowOrders = []order[count.Row]{
	{"node", func(a, b count.Row) int { return strings.Compare(a.Node, b.Node) }},
	{"model", func(a, b count.Row) int { return strings.Compare(a.Model, b.Model) }},
	{"resource", func(a, b count.Row) int { return strings.Compare(a.Resource, b.Resource) }},
	{"state", func(a, b count.Row) int { return strings.Compare(stateText(a.States), stateText(b.States)) }},
	{"capacity", func(a, b count.Row) int { return cmp.Compare(b.Capacity, a.Capacity) }},
	{"allocatable", func(a, b count.Row) int { return cmp.Compare(b.Allocatable, a.Allocatable) }},
	{"requested", func(a, b count.Row) int { return cmp.Compare(b.Requested, a.Requested) }},
	{"free", func(a, b count.Row) int { return cmp.Compare(b.Free, a.Free) }},
	{"usable", func(a, b count.Row) int { return cmp.Compare(b.UsableFree, a.UsableFree) }},
	{"overcommitted", func(a, b count.Row) int { return cmp.Compare(b.Overcommitted, a.Overcommitted) }},
}

func (o *nodesOptions) view(ctx context.Context) (*view, error) {
	selector, err := o.selector()
	if err != nil {
		return nil, err
	}
	r, err := o.count(ctx, wants{nodes: required, selected: selector})
	if err != nil {
		return nil, err
	}
	rows := r.snapshot.Rows
	if selector != nil {
		rows = filter(rows, func(row count.Row) bool { return r.facts.selected[row.Node] })
	}
	if o.model != "" {
		if err := known("model", o.model, modelsOf(r.snapshot)); err != nil {
			return nil, err
		}
		rows = filter(rows, func(row count.Row) bool { return row.Model == o.model })
	}
	rows, err = o.sort(rows)
	if err != nil {
		return nil, err
	}
	totals := r.totals(rows, selector != nil || o.model != "")
	v := &view{
		tables:   []table{nodesTable(r, rows, totals)},
		document: nodesDocument{publish.SchemaVersion, r.snapshot.NodesKnown, orEmpty(rows), totals, r.snapshot.DRA},
		notes:    r.notes,
	}
	seen := make(map[string]bool)
	for _, row := range rows {
		if !seen[row.Node] {
			v.names = append(v.names, "node/"+row.Node)
		}
		seen[row.Node] = true
	}
	switch {
	case len(r.snapshot.Rows) == 0:
		v.notes = append(v.notes, r.nothing())
	case len(rows) == 0:
		v.notes = append(v.notes, "no node with GPUs is selected")
	}
	return v, nil
}

// nodesDocument has the rows of the published nodes.json, in the order asked for.
type nodesDocument struct {
	SchemaVersion string           `json:"schemaVersion"`
	NodesKnown    bool             `json:"nodesKnown"`
	Rows          []count.Row      `json:"rows"`
	Totals        []total          `json:"totals"`
	DRA           *count.DRAStatus `json:"dra,omitempty"`
}

func nodesTable(r *reading, rows []count.Row, totals []total) table {
	several, overcommitted, claimed, blocked, replicas, dra := r.several(), wide, csvOnly, csvOnly, csvOnly, wide
	for i := range rows {
		row := &rows[i]
		if row.Overcommitted > 0 {
			overcommitted = always
		}
		if row.Claimed > 0 {
			claimed = wide
		}
		if row.Blocked > 0 {
			blocked = wide
		}
		if row.Replicas > 1 {
			replicas = wide
		}
		if row.Source != count.DevicePlugin {
			dra = always
		}
	}
	t := table{columns: []column{
		{title: "NODE", field: "node", cut: true},
		{title: "RESOURCE", field: "resource", shown: several, cut: true},
		{title: "SOURCE", field: "source", shown: dra},
		{title: "MODEL", field: "model", cut: true},
		{title: "STATE", field: "states", cut: true},
		{title: "REPLICAS", field: "replicas", shown: replicas, right: true},
		{title: "CAPACITY", field: "capacity", shown: wide, right: true},
		{title: "ALLOCATABLE", field: "allocatable", right: true},
		{title: "REQUESTED", field: "requested", right: true},
		{title: "FREE", field: "free", right: true},
		{title: "USABLE", field: "usableFree", right: true},
		{title: "OVERCOMMITTED", field: "overcommitted", shown: overcommitted, right: true},
		{title: "CLAIMED", field: "claimed", shown: claimed, right: true},
		{title: "BLOCKED", field: "blocked", shown: blocked, right: true},
		{title: "IN USE", shown: terminalOnly},
	}}
	for i := range rows {
		row := &rows[i]
		cells := []cell{text(row.Node), text(row.Resource), text(string(row.Source)), text(row.Model), r.stateCell(row.States), some(row.Replicas)}
		cells = append(cells, r.numberCells(&row.Numbers)...)
		t.rows = append(t.rows, append(cells, some(row.Claimed), some(row.Blocked), r.bar(&row.Numbers)))
	}
	for i := range totals {
		sum := &totals[i]
		cells := []cell{text(fmt.Sprintf("TOTAL (%s)", plural(sum.Nodes, "node"))), text(sum.Resource), text(""), text(""), text(""), text("")}
		cells = append(cells, r.numberCells(&sum.Numbers)...)
		t.totals = append(t.totals, append(cells, text(""), text(""), r.bar(&sum.Numbers)))
		t.after = append(t.after, sum.sentences(len(totals) > 1)...)
	}
	return t
}
