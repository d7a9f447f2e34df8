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

	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// podRow is what a bound pod holds of a resource.
type podRow struct {
	Namespace string     `json:"namespace"`
	Pod       string     `json:"pod"`
	Owner     string     `json:"owner,omitempty"`
	Node      string     `json:"node"`
	Orphaned  bool       `json:"orphaned,omitempty"` // its node does not exist
	Resource  string     `json:"resource"`
	Model     string     `json:"model,omitempty"`
	GPUs      int64      `json:"gpus"`
	Claims    []string   `json:"claims,omitempty"` // through which it has some of them
	Shared    bool       `json:"shared,omitempty"` // other pods have them too
	Phase     string     `json:"phase"`
	Priority  int32      `json:"priority"`
	Created   *time.Time `json:"created,omitempty"`

	created time.Time
}

func (r *podRow) key() key { return key{r.Namespace, r.Pod} }

type podsOptions struct {
	*common
	watching
	selection
	sorting[podRow]
	node, model string
}

func newPods(c *common) *cobra.Command {
	o := &podsOptions{common: c, sorting: sorting[podRow]{orders: podOrders}}
	cmd := &cobra.Command{
		Use:     "pods",
		Aliases: []string{"pod", "po"},
		Short:   "Show who holds GPUs",
		Long: `Show a row for each pod that holds GPUs, and resource: of all namespaces, or with -n
of one. Pods count from the moment they are bound until they have finished or are gone,
also while they start or are being deleted.`,
		Example: `  # who holds the most?
  kubectl gpu-summary pods --sort-by gpus

  # in one namespace, on one node
  kubectl gpu-summary pods -n training --node node-a

  # for a spreadsheet
  kubectl gpu-summary pods -o csv > pods.csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.show(cmd.Context(), o.watching, o.view) },
	}
	o.watching.addFlags(cmd)
	o.selection.addFlags(cmd, "pods")
	o.sorting.addFlags(cmd)
	c.addAllNamespaces(cmd)
	cmd.Flags().StringVar(&o.node, "node", "", "only pods on this `node`")
	cmd.Flags().StringVar(&o.model, "model", "", "only pods that hold this `model`")
	o.completes(cmd, "node", o.completeNodes)
	o.completes(cmd, "model", o.completeModels)
	return cmd
}

var podOrders = []order[podRow]{
	{"namespace", func(a, b podRow) int { return strings.Compare(a.Namespace, b.Namespace) }},
	{"pod", func(a, b podRow) int { return strings.Compare(a.Pod, b.Pod) }},
	{"owner", func(a, b podRow) int { return strings.Compare(a.Owner, b.Owner) }},
	{"node", func(a, b podRow) int { return strings.Compare(a.Node, b.Node) }},
	{"resource", func(a, b podRow) int { return strings.Compare(a.Resource, b.Resource) }},
	{"gpus", func(a, b podRow) int { return cmp.Compare(b.GPUs, a.GPUs) }},
	{"age", func(a, b podRow) int { return a.created.Compare(b.created) }},
	{"priority", func(a, b podRow) int { return cmp.Compare(b.Priority, a.Priority) }},
}

func (o *podsOptions) view(ctx context.Context) (*view, error) {
	selector, err := o.selector()
	if err != nil {
		return nil, err
	}
	r, err := o.read(ctx, wants{namespace: o.only(), pods: selector, nodes: useful, shares: true})
	if err != nil {
		return nil, err
	}
	rows := r.podRows()
	if o.model != "" {
		if err := known("model", o.model, modelsOf(r.snapshot)); err != nil {
			return nil, err
		}
		rows = filter(rows, func(row podRow) bool { return row.Model == o.model })
	}
	if o.node != "" {
		rows = filter(rows, func(row podRow) bool { return row.Node == o.node })
	}
	rows, err = o.sort(rows)
	if err != nil {
		return nil, err
	}
	totals := r.holders(rows, selector == nil && o.model == "" && o.node == "")
	t := o.podsTable(r, rows)
	for _, sum := range totals {
		t.after = append(t.after, sum.sentence())
	}
	v := &view{tables: []table{t}, document: podsDocument{publish.SchemaVersion, orEmpty(rows), totals}, notes: r.notes}
	v.names = podNames(rows)
	if len(rows) == 0 {
		what := "no pod " + o.where()
		if selector != nil || o.model != "" || o.node != "" {
			what += "that is selected "
		}
		v.notes = append(v.notes, what+"holds GPUs; \"pending\" shows those that wait")
	}
	return v, nil
}

type podsDocument struct {
	SchemaVersion string   `json:"schemaVersion"`
	Rows          []podRow `json:"rows"`
	Totals        []holder `json:"totals"`
}

// holder is what pods hold together. A claim that several of them share is in it once.
// GPUs less Orphaned and with Unused is what is requested of the resource.
type holder struct {
	Resource string `json:"resource"`
	Pods     int    `json:"pods"`
	GPUs     int64  `json:"gpus"`
	// Orphaned is the part of GPUs that is on nodes that do not exist.
	Orphaned int64 `json:"orphaned,omitempty"`
	// Unused is held by claims that no pod uses, and so not in GPUs. It is not known
	// when only some pods are shown.
	Unused int64 `json:"unused,omitempty"`
}

func (h *holder) sentence() string {
	verb := "hold"
	if h.Pods == 1 {
		verb = "holds"
	}
	s := fmt.Sprintf("%s %s %d %s", plural(h.Pods, "pod"), verb, h.GPUs, h.Resource)
	if h.Orphaned > 0 {
		s += fmt.Sprintf(", %d of them on nodes that do not exist", h.Orphaned)
	}
	if h.Unused > 0 {
		s += fmt.Sprintf("; ResourceClaims that no pod uses hold %d more", h.Unused)
	}
	return s
}

// podRows are the pods that hold something, by namespace, name and resource.
func (r *reading) podRows() (rows []podRow) {
	models := make(map[[2]string]string)
	for i := range r.snapshot.Rows {
		row := &r.snapshot.Rows[i]
		models[[2]string{row.Node, row.Resource}] = row.Model
	}
	for _, at := range slices.SortedFunc(maps.Keys(r.facts.pods), compareKeys) {
		p := r.facts.pods[at]
		if p.Node == "" || p.Terminal {
			continue
		}
		held := make(map[string]*podRow)
		row := func(resource string) *podRow {
			if held[resource] == nil {
				held[resource] = &podRow{
					Namespace: at.namespace, Pod: at.name, Owner: p.owner, Node: p.Node, Orphaned: !r.exists(p.Node),
					Resource: resource, Model: models[[2]string{p.Node, resource}],
					Phase: p.phase, Priority: p.Priority, Created: stamp(p.created), created: p.created,
				}
			}
			return held[resource]
		}
		for resource, share := range r.shares.pods[at] {
			row(resource).GPUs = share.requested
		}
		for _, name := range p.claims {
			c := key{at.namespace, name}
			for resource, share := range r.shares.claims[c] {
				of := row(resource)
				of.GPUs = plus(of.GPUs, share.requested)
				of.Claims = append(of.Claims, name)
				of.Shared = of.Shared || len(r.facts.claims[c].pods) > 1
			}
		}
		for _, resource := range slices.Sorted(maps.Keys(held)) {
			if held[resource].GPUs > 0 {
				rows = append(rows, *held[resource])
			}
		}
	}
	return rows
}

// holders are the totals of rows; of all pods there are, or of those that are shown.
func (r *reading) holders(rows []podRow, all bool) []holder {
	sums := make(map[string]*holder)
	sum := func(resource string) *holder {
		if sums[resource] == nil {
			sums[resource] = &holder{Resource: resource}
		}
		return sums[resource]
	}
	used := make(map[[3]string]bool)
	for i := range rows {
		row := &rows[i]
		h := sum(row.Resource)
		h.Pods++
		h.hold(r.shares.pods[row.key()][row.Resource])
		for _, name := range row.Claims {
			if at := [3]string{row.Namespace, name, row.Resource}; !used[at] {
				used[at] = true
				h.hold(r.shares.claims[key{row.Namespace, name}][row.Resource])
			}
		}
	}
	for at, portions := range r.shares.claims {
		for resource, p := range portions {
			unused := p.requested - p.orphaned
			if all && unused > 0 && !used[[3]string{at.namespace, at.name, resource}] && r.within(at.namespace) {
				h := sum(resource)
				h.Unused = plus(h.Unused, unused)
			}
		}
	}
	out := []holder{}
	for _, resource := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, *sums[resource])
	}
	return out
}

func (h *holder) hold(p portion) {
	h.GPUs = plus(h.GPUs, p.requested)
	h.Orphaned = plus(h.Orphaned, p.orphaned)
}

func (c *common) podsTable(r *reading, rows []podRow) table {
	t := table{columns: []column{
		{title: "NAMESPACE", field: "namespace", cut: true},
		{title: "POD", field: "pod", cut: true},
		{title: "OWNER", field: "owner", cut: true},
		{title: "NODE", field: "node", cut: true},
		{title: "RESOURCE", field: "resource", shown: r.several(), cut: true},
		{title: "MODEL", field: "model", shown: wide, cut: true},
		{title: "GPUS", field: "gpus", right: true},
		{title: "STATUS", field: "phase"},
		{title: "AGE", shown: tableOnly, right: true},
		{field: "created", shown: csvOnly},
		{title: "PRIORITY", field: "priority", right: true},
		{title: "CLAIMS", field: "claims", shown: wide, cut: true},
		{field: "orphaned", shown: csvOnly},
		{field: "shared", shown: csvOnly},
	}}
	for i := range rows {
		row := &rows[i]
		node, gpus, phase := text(row.Node), number(row.GPUs), text(row.Phase)
		if row.Orphaned {
			node = node.in(red)
			phase = phase.in(red).inTables(row.Phase + ", node is gone")
		}
		t.rows = append(t.rows, []cell{
			text(row.Namespace), text(row.Pod), orNone(row.Owner), node, text(row.Resource), text(row.Model), gpus, phase,
			c.age(row.created), stampCell(row.Created), number(row.Priority), text(strings.Join(row.Claims, ",")),
			text(fmt.Sprint(row.Orphaned)), text(fmt.Sprint(row.Shared)),
		})
	}
	return t
}

// podNames has each pod once.
func podNames(rows []podRow) (names []string) {
	seen := make(map[key]bool)
	for i := range rows {
		if at := rows[i].key(); !seen[at] {
			seen[at] = true
			names = append(names, "pod/"+at.name)
		}
	}
	return names
}
