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

// pendingRow is what a pod waits for of a resource.
type pendingRow struct {
	Namespace string     `json:"namespace"`
	Pod       string     `json:"pod"`
	Owner     string     `json:"owner,omitempty"`
	Reason    string     `json:"reason"`
	Resource  string     `json:"resource"`
	GPUs      int64      `json:"gpus"`
	Models    []string   `json:"models,omitempty"` // that it waits for one of
	Claims    []string   `json:"claims,omitempty"` // that ask for them, outside the totals
	Priority  int32      `json:"priority"`
	Created   *time.Time `json:"created,omitempty"`
	Message   string     `json:"message,omitempty"`

	created time.Time
}

// pendingTotal is what waits of a resource, as summary.json has it.
type pendingTotal struct {
	Resource string `json:"resource"`
	count.Pending
}

type pendingDocument struct {
	SchemaVersion string         `json:"schemaVersion"`
	Rows          []pendingRow   `json:"rows"`
	Totals        []pendingTotal `json:"totals"`
}

type pendingOptions struct {
	*common
	watching
	selection
	sorting[pendingRow]
}

func newPending(c *common) *cobra.Command {
	o := &pendingOptions{common: c, sorting: sorting[pendingRow]{orders: pendingOrders}}
	cmd := &cobra.Command{
		Use:   "pending",
		Short: "Show who waits for GPUs, how long, and why",
		Long: `Show a row for each pod that waits for a node and asks for GPUs, and resource. The
reasons are: unschedulable, a scheduler has tried and says why in its own words; untried, it
is in the queue; nominated, others are being evicted for it. Those that are gated are
shown apart: nobody may schedule them yet.

Pods that ask for devices with a ResourceClaim of their own are shown, but are not in
the totals.`,
		Example: `  # who waits the longest?
  kubectl gpu-summary pending --sort-by waiting

  # the scheduler's whole message
  kubectl gpu-summary pending -o json | jq -r '.rows[] | [.pod, .message] | @tsv'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.show(cmd.Context(), o.watching, o.view) },
	}
	o.watching.addFlags(cmd)
	o.selection.addFlags(cmd, "pods")
	o.sorting.addFlags(cmd)
	c.addAllNamespaces(cmd)
	return cmd
}

var pendingOrders = []order[pendingRow]{
	{"namespace", func(a, b pendingRow) int { return strings.Compare(a.Namespace, b.Namespace) }},
	{"pod", func(a, b pendingRow) int { return strings.Compare(a.Pod, b.Pod) }},
	{"owner", func(a, b pendingRow) int { return strings.Compare(a.Owner, b.Owner) }},
	{"reason", func(a, b pendingRow) int { return cmp.Compare(reasonOrder(a.Reason), reasonOrder(b.Reason)) }},
	{"resource", func(a, b pendingRow) int { return strings.Compare(a.Resource, b.Resource) }},
	{"gpus", func(a, b pendingRow) int { return cmp.Compare(b.GPUs, a.GPUs) }},
	{"waiting", func(a, b pendingRow) int { return a.created.Compare(b.created) }},
	{"priority", func(a, b pendingRow) int { return cmp.Compare(b.Priority, a.Priority) }},
}

func reasonOrder(reason string) int {
	return slices.IndexFunc(count.Waits, func(w count.Wait) bool { return w.String() == reason })
}

func (o *pendingOptions) view(ctx context.Context) (*view, error) {
	selector, err := o.selector()
	if err != nil {
		return nil, err
	}
	if o.fromConfigMap != "" && selector != nil {
		return nil, errLabels
	}
	r, err := o.count(ctx, wants{namespace: o.only(), pods: selector, nodes: useful, shares: true})
	if err != nil {
		return nil, err
	}
	var rows []pendingRow
	if r.facts != nil {
		rows = r.pendingRows()
	}
	if rows, err = o.sort(rows); err != nil {
		return nil, err
	}
	waits := filter(rows, func(row pendingRow) bool { return row.Reason != count.Gated.String() })
	gated := filter(rows, func(row pendingRow) bool { return row.Reason == count.Gated.String() })
	all, first, second := o.pendingTable(r, rows), o.pendingTable(r, waits), o.pendingTable(r, gated)
	if len(gated) > 0 {
		second.title = "Gated: nobody may schedule these yet"
	}
	totals := pendingTotals(r.snapshot)
	last := table{after: pendingSentences(r.snapshot, totals, rows)}
	v := &view{tables: []table{first, second, last}, csv: &all, notes: r.notes, document: pendingDocument{publish.SchemaVersion, orEmpty(rows), totals}}
	for i := range rows {
		v.names = append(v.names, "pod/"+rows[i].Pod)
	}
	v.names = once(v.names)
	switch {
	case len(rows) == 0 && len(last.after) == 0:
		v.notes = append(v.notes, "no pod "+o.where()+"waits for GPUs")
	case r.facts == nil:
		v.notes = append(v.notes, "which pods they are is not published")
	}
	return v, nil
}

// pendingRows are the pods that wait, by reason and the oldest first.
func (r *reading) pendingRows() (rows []pendingRow) {
	for at, p := range r.facts.pods {
		if p.Node != "" || p.Terminal || p.Deleting {
			continue
		}
		asked := make(map[string]*pendingRow)
		row := func(resource string) *pendingRow {
			if asked[resource] == nil {
				asked[resource] = &pendingRow{
					Namespace: at.namespace, Pod: at.name, Owner: p.owner, Reason: p.Wait.String(), Resource: resource,
					Models: p.Models(resource), Priority: p.Priority, Created: stamp(p.created), Message: p.message, created: p.created,
				}
			}
			return asked[resource]
		}
		for resource, share := range r.shares.pods[at] {
			row(resource).GPUs = share.pending
		}
		for _, name := range p.claims {
			for resource, share := range r.shares.waiting[key{at.namespace, name}] {
				of := row(resource)
				of.GPUs = plus(of.GPUs, share.pending)
				of.Claims = append(of.Claims, name)
			}
		}
		for _, resource := range slices.Sorted(maps.Keys(asked)) {
			if asked[resource].GPUs > 0 {
				rows = append(rows, *asked[resource])
			}
		}
	}
	slices.SortFunc(rows, func(a, b pendingRow) int {
		return cmp.Or(cmp.Compare(reasonOrder(a.Reason), reasonOrder(b.Reason)), a.created.Compare(b.created),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Resource, b.Resource))
	})
	return rows
}

func pendingTotals(snapshot *count.Snapshot) []pendingTotal {
	totals := []pendingTotal{}
	for i := range snapshot.Summaries {
		s := &snapshot.Summaries[i]
		if s.Pending.Pods > 0 {
			totals = append(totals, pendingTotal{s.Resource, s.Pending})
		}
	}
	return totals
}

func pendingSentences(snapshot *count.Snapshot, totals []pendingTotal, rows []pendingRow) (out []string) {
	for _, t := range totals {
		var shapes []string
		for _, shape := range t.Shapes {
			shapes = append(shapes, fmt.Sprintf("%d × %d", shape.Pods, shape.Devices))
		}
		out = append(out, fmt.Sprintf("%s: %s (pods × GPUs each: %s)", t.Resource, waiting(t.Pods, t.Devices, t.Reasons), strings.Join(shapes, ", ")))
		if models := byModel(snapshot.Of(t.Resource)); models != "" {
			out = append(out, fmt.Sprintf("%s by model: %s", t.Resource, models))
		}
	}
	claiming := make(map[key]bool)
	for i := range rows {
		if len(rows[i].Claims) > 0 {
			claiming[key{rows[i].Namespace, rows[i].Pod}] = true
		}
	}
	if n := len(claiming); n > 0 {
		out = append(out, fmt.Sprintf("%s with a ResourceClaim, which is in none of these totals", waitVerb(n)))
	}
	return out
}

// byModel says what is waited for of each model, "" if no pod names one.
func byModel(sum count.Summary) string {
	var parts []string
	for _, m := range sum.Models {
		if m.Pending > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", m.Pending, m.Name))
		}
	}
	p := &sum.Pending
	for _, other := range []struct {
		devices int64
		what    string
	}{{p.SeveralModels, "any of several"}, {p.AbsentModel, "a model that no node has"}} {
		if other.devices > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", other.devices, other.what))
		}
	}
	if len(parts) > 0 && p.AnyModel > 0 {
		parts = append(parts, fmt.Sprintf("%d any", p.AnyModel))
	}
	return strings.Join(parts, ", ")
}

func orAny(models []string) cell {
	if len(models) == 0 {
		return cell{text: "any", colour: faint}
	}
	return text(strings.Join(models, ","))
}

func (c *common) pendingTable(r *reading, rows []pendingRow) table {
	t := table{columns: []column{
		{title: "NAMESPACE", field: "namespace", cut: true},
		{title: "POD", field: "pod", cut: true},
		{title: "OWNER", field: "owner", shown: wide, cut: true},
		{title: "REASON", field: "reason"},
		{title: "RESOURCE", field: "resource", shown: r.several(), cut: true},
		{title: "GPUS", field: "gpus", right: true},
		{title: "MODEL", field: "models", cut: true},
		{title: "WAITING", shown: tableOnly, right: true},
		{field: "created", shown: csvOnly},
		{title: "PRIORITY", field: "priority", right: true},
		{title: "CLAIMS", field: "claims", shown: wide, cut: true},
		{title: "MESSAGE", field: "message", cut: true},
	}}
	for i := range rows {
		row := &rows[i]
		reason := text(row.Reason)
		if row.Reason == count.Unschedulable.String() {
			reason.colour = red
		}
		t.rows = append(t.rows, []cell{
			text(row.Namespace), text(row.Pod), orNone(row.Owner), reason, text(row.Resource), number(row.GPUs), orAny(row.Models), c.age(row.created), stampCell(row.Created),
			number(row.Priority), text(strings.Join(row.Claims, ",")), text(row.Message),
		})
	}
	return t
}
