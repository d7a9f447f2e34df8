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

// namespaceRow is what a namespace holds and waits for.
type namespaceRow struct {
	Namespace string `json:"namespace"`
	Resource  string `json:"resource"`
	Requested int64  `json:"requested"`
	Pending   int64  `json:"pending"`
}

type namespacesOptions struct {
	*common
	watching
	sorting[namespaceRow]
}

func newNamespaces(c *common) *cobra.Command {
	o := &namespacesOptions{common: c, sorting: sorting[namespaceRow]{orders: []order[namespaceRow]{
		{"namespace", func(a, b namespaceRow) int { return strings.Compare(a.Namespace, b.Namespace) }},
		{"resource", func(a, b namespaceRow) int { return strings.Compare(a.Resource, b.Resource) }},
		{"requested", func(a, b namespaceRow) int { return cmp.Compare(b.Requested, a.Requested) }},
		{"pending", func(a, b namespaceRow) int { return cmp.Compare(b.Pending, a.Pending) }},
	}}}
	cmd := &cobra.Command{
		Use:     "namespaces",
		Aliases: []string{"namespace", "ns"},
		Short:   "Show what each namespace holds and waits for",
		Example: `  # who has the most?
  kubectl gpu-summary namespaces --sort-by requested

  # who waits for the most?
  kubectl gpu-summary namespaces --sort-by pending`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.show(cmd.Context(), o.watching, o.view) },
	}
	o.watching.addFlags(cmd)
	o.sorting.addFlags(cmd)
	return cmd
}

func (o *namespacesOptions) view(ctx context.Context) (*view, error) {
	r, err := o.count(ctx, wants{nodes: useful})
	if err != nil {
		return nil, err
	}
	rows := []namespaceRow{}
	for i := range r.snapshot.Summaries {
		sum := &r.snapshot.Summaries[i]
		for _, share := range sum.Namespaces {
			// Of what was published -n is where it is.
			if o.fromConfigMap != "" || o.only() == "" || share.Name == o.only() {
				rows = append(rows, namespaceRow{share.Name, sum.Resource, share.Requested, share.Pending})
			}
		}
	}
	if rows, err = o.sort(rows); err != nil {
		return nil, err
	}
	t := table{columns: []column{
		{title: "NAMESPACE", field: "namespace", cut: true},
		{title: "RESOURCE", field: "resource", shown: r.several(), cut: true},
		{title: "REQUESTED", field: "requested", right: true},
		{title: "PENDING", field: "pending", right: true},
		{title: "OF ALL REQUESTED", shown: tableOnly, right: true},
	}}
	v := &view{notes: r.notes}
	for _, row := range rows {
		t.rows = append(t.rows, []cell{
			text(row.Namespace), text(row.Resource), zero(row.Requested), zero(row.Pending), percent(row.Requested, r.snapshot.Of(row.Resource).Requested),
		})
		v.names = append(v.names, "namespace/"+row.Namespace)
	}
	v.names = once(v.names)
	v.tables = []table{t}
	v.document = rowsDocument[namespaceRow]{publish.SchemaVersion, rows}
	if len(rows) == 0 {
		v.notes = append(v.notes, "no pod "+o.where()+"holds GPUs or waits for one")
	}
	return v, nil
}

// rowsDocument is a document of rows alone.
type rowsDocument[T any] struct {
	SchemaVersion string `json:"schemaVersion"`
	Rows          []T    `json:"rows"`
}

func percent(part, whole int64) cell {
	if whole <= 0 {
		return text("")
	}
	return text(fmt.Sprintf("%.0f%%", 100*float64(part)/float64(whole)))
}

// once drops names that were there already.
func once(names []string) (out []string) {
	seen := make(map[string]bool)
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// modelRow is the part of a resource that is of one product.
type modelRow struct {
	Resource string `json:"resource"`
	count.Model
}

type modelsOptions struct {
	*common
	watching
	sorting[modelRow]
}

func newModels(c *common) *cobra.Command {
	o := &modelsOptions{common: c, sorting: sorting[modelRow]{orders: []order[modelRow]{
		{"model", func(a, b modelRow) int { return strings.Compare(a.Name, b.Name) }},
		{"resource", func(a, b modelRow) int { return strings.Compare(a.Resource, b.Resource) }},
		{"nodes", func(a, b modelRow) int { return cmp.Compare(b.Nodes, a.Nodes) }},
		{"allocatable", func(a, b modelRow) int { return cmp.Compare(b.Allocatable, a.Allocatable) }},
		{"requested", func(a, b modelRow) int { return cmp.Compare(b.Requested, a.Requested) }},
		{"free", func(a, b modelRow) int { return cmp.Compare(b.Free, a.Free) }},
		{"usable", func(a, b modelRow) int { return cmp.Compare(b.UsableFree, a.UsableFree) }},
		{"pending", func(a, b modelRow) int { return cmp.Compare(b.Pending, a.Pending) }},
		{"largest", func(a, b modelRow) int { return cmp.Compare(b.Fit.LargestFree, a.Fit.LargestFree) }},
	}}}
	cmd := &cobra.Command{
		Use:     "models",
		Aliases: []string{"model"},
		Short:   "Show what there is of each model, and what would fit",
		Long: `Show a row for each model and resource. LARGEST is the most usable free devices on one
node: the largest pod that could start now. PENDING is what pods ask for that wait for this
model and no other that there is; what waits for any is in none. With -o wide there is a
column for pods of 1, 2, 4 and 8 devices and of the largest node: how many of them could
start now.`,
		Example: `  # what is free of each model?
  kubectl gpu-summary models

  # how many pods of 8 would fit?
  kubectl gpu-summary models -o wide`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.show(cmd.Context(), o.watching, o.view) },
	}
	o.watching.addFlags(cmd)
	o.sorting.addFlags(cmd)
	return cmd
}

func (o *modelsOptions) view(ctx context.Context) (*view, error) {
	r, err := o.count(ctx, wants{nodes: required})
	if err != nil {
		return nil, err
	}
	rows := []modelRow{}
	for i := range r.snapshot.Summaries {
		for _, model := range r.snapshot.Summaries[i].Models {
			rows = append(rows, modelRow{r.snapshot.Summaries[i].Resource, model})
		}
	}
	if rows, err = o.sort(rows); err != nil {
		return nil, err
	}
	v := &view{tables: []table{modelsTable(r, rows)}, document: rowsDocument[modelRow]{publish.SchemaVersion, rows}, notes: r.notes}
	for _, row := range rows {
		v.names = append(v.names, "model/"+row.Name)
	}
	v.names = once(v.names)
	if len(rows) == 0 {
		v.notes = append(v.notes, r.nothing())
	}
	return v, nil
}

func modelsTable(r *reading, rows []modelRow) table {
	t := table{columns: []column{
		{title: "MODEL", field: "model", cut: true},
		{title: "RESOURCE", field: "resource", shown: r.several(), cut: true},
		{title: "NODES", field: "nodes", right: true},
		{title: "CAPACITY", field: "capacity", shown: wide, right: true},
		{title: "ALLOCATABLE", field: "allocatable", right: true},
		{title: "REQUESTED", field: "requested", right: true},
		{title: "FREE", field: "free", right: true},
		{title: "USABLE", field: "usableFree", right: true},
		{title: "OVERCOMMITTED", field: "overcommitted", shown: wide, right: true},
		{title: "PENDING", field: "pending", right: true},
		{title: "LARGEST", field: "largestFree", right: true},
	}}
	var sizes []int64
	for i := range rows {
		for _, size := range rows[i].Fit.Sizes {
			sizes = append(sizes, size.Devices)
		}
	}
	sizes = sorted(sizes)
	for _, size := range sizes {
		t.columns = append(t.columns, column{title: fmt.Sprintf("FIT ×%d", size), field: fmt.Sprintf("placeable%d", size), shown: wide, right: true})
	}
	t.columns = append(t.columns, column{title: "IN USE", shown: terminalOnly})
	for i := range rows {
		row := &rows[i]
		cells := append([]cell{text(row.Name), text(row.Resource), number(row.Nodes)}, r.numberCells(&row.Numbers)...)
		cells = append(cells, r.ofNodes(row.Pending), r.ofNodes(row.Fit.LargestFree))
		for _, size := range sizes {
			cells = append(cells, r.placeable(row.Fit.Sizes, size))
		}
		t.rows = append(t.rows, append(cells, r.bar(&row.Numbers)))
	}
	return t
}

// ofNodes is a number that nobody has without nodes.
func (r *reading) ofNodes(n int64) cell {
	if !r.snapshot.NodesKnown {
		return unknown
	}
	return zero(n)
}

func (r *reading) placeable(sizes []count.Size, devices int64) cell {
	if !r.snapshot.NodesKnown {
		return unknown
	}
	for _, size := range sizes {
		if size.Devices == devices {
			return zero(size.Placeable)
		}
	}
	return text("") // no node of this model is the largest of so many
}
