package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// description is all that there is to say of a node.
type description struct {
	Node   string        `json:"node"`
	Exists bool          `json:"exists"`
	States []count.State `json:"states"`
	Taints []string      `json:"taints"`
	Rows   []count.Row   `json:"rows"`
	Pods   []podRow      `json:"pods"`
	Claims []claimRow    `json:"claims"`
	// Pools are those with devices on the node that are in no row.
	Pools []count.PoolIssue `json:"pools"`
}

type describeDocument struct {
	SchemaVersion string        `json:"schemaVersion"`
	Nodes         []description `json:"nodes"`
}

type describeOptions struct {
	*common
	watching
	selection
}

func newDescribe(c *common) *cobra.Command {
	o := &describeOptions{common: c}
	cmd := &cobra.Command{
		Use:   "describe NODE...",
		Short: "Show everything about a node's GPUs",
		Long: `Show what a node has, what keeps pods away from it, and who holds its GPUs: pods of all
namespaces, and ResourceClaims.`,
		Example: `  # one node
  kubectl gpu-summary describe node-a

  # those of a pool
  kubectl gpu-summary describe -l pool=training`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (args[0] == "node" || args[0] == "nodes") {
				args = args[1:] // as one says it to kubectl
			}
			if (len(args) == 0) == (o.labels == "") {
				return errors.New("describe: name nodes, or select them with -l")
			}
			return o.show(cmd.Context(), o.watching, func(ctx context.Context) (*view, error) { return o.view(ctx, args) })
		},
	}
	o.watching.addFlags(cmd)
	o.selection.addFlags(cmd, "nodes")
	cmd.ValidArgsFunction = o.completeNodes
	return cmd
}

func (o *describeOptions) view(ctx context.Context, names []string) (*view, error) {
	selector, err := o.selector()
	if err != nil {
		return nil, err
	}
	r, err := o.count(ctx, wants{nodes: required, selected: selector, shares: true, detail: names})
	if err != nil {
		return nil, err
	}
	if selector != nil {
		names = slices.Sorted(maps.Keys(r.facts.selected))
		names = filter(names, func(name string) bool { return len(r.rowsOf(name)) > 0 })
	}
	v := &view{notes: r.notes}
	if len(names) == 0 {
		v.notes = append(v.notes, "no node with GPUs is selected")
	}
	document := describeDocument{publish.SchemaVersion, []description{}}
	all := nodesTable(r, nil, nil)
	for _, name := range names {
		d, err := r.describe(name)
		if err != nil {
			return nil, err
		}
		document.Nodes = append(document.Nodes, d)
		v.names = append(v.names, "node/"+name)
		v.tables = append(v.tables, o.describeTables(r, &d)...)
		all.rows = append(all.rows, nodesTable(r, d.Rows, nil).rows...)
	}
	v.csv, v.document = &all, document
	if r.facts == nil {
		v.notes = append(v.notes, "who holds them is not published")
	}
	return v, nil
}

func (r *reading) rowsOf(node string) []count.Row {
	return filter(r.snapshot.Rows, func(row count.Row) bool { return row.Node == node })
}

func (r *reading) describe(name string) (description, error) {
	d := description{
		Node: name, Exists: true, States: []count.State{}, Taints: []string{}, Rows: orEmpty(r.rowsOf(name)),
		Pods: []podRow{}, Claims: []claimRow{}, Pools: []count.PoolIssue{},
	}
	if len(d.Rows) > 0 {
		d.States = orEmpty(d.Rows[0].States)
	}
	if r.snapshot.DRA != nil {
		d.Pools = orEmpty(filter(r.snapshot.DRA.Pools, func(p count.PoolIssue) bool { return p.Node == name }))
	}
	if r.facts != nil {
		d.Exists = r.exists(name)
		d.Pods = orEmpty(filter(r.podRows(), func(row podRow) bool { return row.Node == name }))
		d.Claims = orEmpty(filter(r.claimRows(), func(row claimRow) bool { return row.Node == name }))
		if record := r.facts.nodes[name]; record != nil {
			d.States = orEmpty(record.States)
		}
		if node := r.facts.details[name]; node != nil {
			d.Taints = taintsOf(node)
		}
	}
	if len(d.Rows)+len(d.Pods) == 0 && (!d.Exists || r.facts == nil) {
		var nodes []string
		for i := range r.snapshot.Rows {
			nodes = append(nodes, r.snapshot.Rows[i].Node)
		}
		nodes = once(nodes)
		if len(nodes) == 0 {
			return d, fmt.Errorf("node %q does not exist; no node has GPUs", name)
		}
		return d, fmt.Errorf("node %q does not exist; nodes with GPUs are: %s", name, list(nodes))
	}
	return d, nil
}

func taintsOf(node *corev1.Node) []string {
	taints := []string{}
	for i := range node.Spec.Taints {
		taints = append(taints, node.Spec.Taints[i].ToString())
	}
	return taints
}

func (o *describeOptions) describeTables(r *reading, d *description) []table {
	head := table{title: "Node " + d.Node}
	say := func(format string, args ...any) { head.after = append(head.after, fmt.Sprintf(format, args...)) }
	switch {
	case !d.Exists:
		say("There is no such node; pods that are bound to it are in no total.")
	case !r.snapshot.NodesKnown:
		say("Nothing is known of the node itself.")
	default:
		say("State:  %s", stateText(d.States))
		if len(d.Taints) > 0 {
			say("Taints: %s", strings.Join(d.Taints, ", "))
		}
	}
	if len(d.Rows) == 0 && d.Exists {
		say("It has no GPUs.")
	}
	devices := nodesTable(r, d.Rows, nil)
	devices.title = "GPUs"
	tables := []table{head, devices}
	if len(d.Pods) > 0 {
		pods := o.podsTable(r, d.Pods)
		pods.title = "Pods that hold them"
		tables = append(tables, pods)
	}
	if len(d.Claims) > 0 {
		claims := o.claimsTable(r, d.Claims)
		claims.title = "ResourceClaims"
		tables = append(tables, claims)
	}
	return tables
}
