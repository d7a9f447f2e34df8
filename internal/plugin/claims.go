package plugin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// The states of a claim.
const (
	allocated = "allocated"
	waitsFor  = "waiting"
)

// claimRow is what a claim holds of a resource, or asks for.
type claimRow struct {
	Namespace string   `json:"namespace"`
	Claim     string   `json:"claim"`
	State     string   `json:"state"`
	Resource  string   `json:"resource"`
	GPUs      int64    `json:"gpus"`
	Node      string   `json:"node,omitempty"`
	Pods      []string `json:"pods"` // that have reserved it
	Classes   []string `json:"classes"`
	// Devices is all that the claim holds, as driver/pool/device; GPUs says how many
	// of them count.
	Devices []string   `json:"devices"`
	Created *time.Time `json:"created,omitempty"`

	created time.Time
}

type claimsOptions struct {
	*common
	watching
	sorting[claimRow]
}

func newClaims(c *common) *cobra.Command {
	o := &claimsOptions{common: c, sorting: sorting[claimRow]{orders: []order[claimRow]{
		{"namespace", func(a, b claimRow) int { return strings.Compare(a.Namespace, b.Namespace) }},
		{"claim", func(a, b claimRow) int { return strings.Compare(a.Claim, b.Claim) }},
		{"state", func(a, b claimRow) int { return strings.Compare(a.State, b.State) }},
		{"resource", func(a, b claimRow) int { return strings.Compare(a.Resource, b.Resource) }},
		{"gpus", func(a, b claimRow) int { return cmp.Compare(b.GPUs, a.GPUs) }},
		{"node", func(a, b claimRow) int { return strings.Compare(a.Node, b.Node) }},
		{"age", func(a, b claimRow) int { return a.created.Compare(b.created) }},
	}}}
	cmd := &cobra.Command{
		Use:     "claims",
		Aliases: []string{"claim", "resourceclaims"},
		Short:   "Show which ResourceClaims hold GPUs or wait for one",
		Long: `Show a row for each ResourceClaim that holds GPUs of a DRA driver or asks for one, and
resource. A device of which several claims have a share is in the row of one of them, as
in all totals.`,
		Example: `  # claims that hold GPUs
  kubectl gpu-summary claims

  # held, and used by nobody
  kubectl gpu-summary claims -o json | jq '.rows[] | select(.state == "allocated" and .pods == [])'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.show(cmd.Context(), o.watching, o.view) },
	}
	o.watching.addFlags(cmd)
	o.sorting.addFlags(cmd)
	c.addAllNamespaces(cmd)
	return cmd
}

func (o *claimsOptions) view(ctx context.Context) (*view, error) {
	r, err := o.read(ctx, wants{namespace: o.only(), shares: true})
	if err != nil {
		return nil, err
	}
	rows := filter(r.claimRows(), func(row claimRow) bool { return r.within(row.Namespace) })
	if rows, err = o.sort(rows); err != nil {
		return nil, err
	}
	t := o.claimsTable(r, rows)
	t.after = claimSentences(rows)
	v := &view{tables: []table{t}, document: rowsDocument[claimRow]{publish.SchemaVersion, orEmpty(rows)}, notes: r.notes}
	for i := range rows {
		v.names = append(v.names, "resourceclaim/"+rows[i].Claim)
	}
	v.names = once(v.names)
	switch {
	case r.snapshot.DRA.State == count.DRAAbsent:
		v.notes = append(v.notes, "there are no ResourceClaims: "+cmp.Or(r.snapshot.DRA.Reason, "resource.k8s.io/v1 is not served"))
	case len(rows) == 0:
		v.notes = append(v.notes, "no ResourceClaim "+o.where()+"holds GPUs or asks for one")
	}
	return v, nil
}

// claimRows are the claims for GPUs, by namespace, name and resource.
func (r *reading) claimRows() (rows []claimRow) {
	for _, at := range slices.SortedFunc(maps.Keys(r.facts.claims), compareKeys) {
		c := r.facts.claims[at]
		row := claimRow{
			Namespace: at.namespace, Claim: at.name, State: allocated, Node: c.Node, Pods: orEmpty(c.pods),
			Classes: []string{}, Devices: []string{}, Created: stamp(c.created), created: c.created,
		}
		for _, ask := range c.asks {
			row.Classes = append(row.Classes, ask.class)
		}
		row.Classes = orEmpty(once(row.Classes))
		for _, d := range c.Devices {
			row.Devices = append(row.Devices, d.Driver+"/"+d.Pool+"/"+d.Device)
		}
		part := r.shares.claims[at]
		if !c.Holds() {
			row.State, part = waitsFor, r.shares.waiting[at]
		}
		for _, resource := range slices.Sorted(maps.Keys(part)) {
			row.Resource, row.GPUs = resource, plus(part[resource].requested, part[resource].pending)
			if row.GPUs > 0 {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func (c *common) claimsTable(r *reading, rows []claimRow) table {
	t := table{columns: []column{
		{title: "NAMESPACE", field: "namespace", cut: true},
		{title: "CLAIM", field: "claim", cut: true},
		{title: "STATE", field: "state"},
		{title: "RESOURCE", field: "resource", shown: r.several(), cut: true},
		{title: "GPUS", field: "gpus", right: true},
		{title: "NODE", field: "node", cut: true},
		{title: "PODS", field: "pods", cut: true},
		{title: "CLASSES", field: "classes", shown: wide, cut: true},
		{title: "DEVICES", field: "devices", shown: wide, cut: true},
		{title: "AGE", shown: tableOnly, right: true},
		{field: "created", shown: csvOnly},
	}}
	for i := range rows {
		row := &rows[i]
		state := text(row.State)
		if row.State == waitsFor {
			state.colour = yellow
		}
		t.rows = append(t.rows, []cell{
			text(row.Namespace), text(row.Claim), state, text(row.Resource), number(row.GPUs), orNone(row.Node), orNone(strings.Join(row.Pods, ",")),
			text(strings.Join(row.Classes, ",")), text(strings.Join(row.Devices, ",")), c.age(row.created), stampCell(row.Created),
		})
	}
	return t
}

func claimSentences(rows []claimRow) (out []string) {
	type sum struct {
		claims int
		gpus   int64
	}
	sums := map[string]map[string]*sum{}
	for i := range rows {
		row := &rows[i]
		if sums[row.Resource] == nil {
			sums[row.Resource] = map[string]*sum{allocated: {}, waitsFor: {}}
		}
		s := sums[row.Resource][row.State]
		s.claims++
		s.gpus = plus(s.gpus, row.GPUs)
	}
	for _, resource := range slices.Sorted(maps.Keys(sums)) {
		held, asked := sums[resource][allocated], sums[resource][waitsFor]
		line := fmt.Sprintf("%s: held by %s: %d", resource, plural(held.claims, "claim"), held.gpus)
		if asked.claims > 0 {
			line += fmt.Sprintf("; asked for by %s: %d", plural(asked.claims, "claim"), asked.gpus)
		}
		out = append(out, line)
	}
	return out
}
