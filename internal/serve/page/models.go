package page

import (
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// tableSizes are the sizes of pods that the table of models has columns for.
var tableSizes = []int64{1, 2, 4, 8}

// placeable is how many pods of each of these sizes could start. A fit without any nodes
// has no sizes.
func placeable(f count.Fit) []int64 {
	out := make([]int64, len(tableSizes))
	for i, devices := range tableSizes {
		if at := slices.IndexFunc(f.Sizes, func(s count.Size) bool { return s.Devices == devices }); at >= 0 {
			out[i] = f.Sizes[at].Placeable
		}
	}
	return out
}

// models is the table of them, nothing where nodes are not known.
func (o overview) models() g.Node {
	if !o.NodesKnown {
		return nil
	}
	shown, more := firstOf(o.Sum.Models)
	explained := "The last columns: how many pods of 1, 2, 4 and 8 devices could start now; they are alternatives." + ofNoModel(o.Sum.Pending)
	if more > 0 {
		explained += " " + Plural(more, "more model") + " not shown."
	}
	return liveCard("models", "Models",
		wide("Models",
			heads(head("Model"), numberHead("Nodes"), numberHead("Allocatable"), numberHead("Requested"), numberHead("Usable"), numberHead("Pending"), head("In use"),
				g.Map(tableSizes, sizeHead)),
			h.TBody(g.Map(shown, o.model), g.If(len(shown) == 0, remark(11, "No node has "+o.Resource+"."))),
			h.TFoot(o.all())),
		hint(explained))
}

// ofNoModel says what is pending and in no model.
func ofNoModel(p count.Pending) string {
	var parts []string
	for _, part := range []struct {
		devices int64
		what    string
	}{{p.AnyModel, "any model will do"}, {p.SeveralModels, "any of several will do"}, {p.AbsentModel, "only a model will do that no node has"}} {
		if part.devices > 0 {
			parts = append(parts, "for "+Number(part.devices)+" "+part.what)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " Of what is pending, " + strings.Join(parts, ", ") + "."
}

// sizeHead says no more than "2 ×" to those who see the table.
func sizeHead(devices int64) g.Node {
	return h.Th(h.Scope("col"), numeric,
		h.Span(h.Class("hidden"), g.Text("Pods that could start, of ")), g.Text(Number(devices)),
		h.Span(h.Class("hidden"), g.Text(" devices")), h.Span(h.Aria("hidden", "true"), g.Text(" ×")))
}

func (o overview) model(m count.Model) g.Node {
	return h.Tr(
		rowHead(to(address("nodes", url.Values{"resource": {o.Resource}, "model": {m.Name}}), m.Name)),
		plainCell(Number(m.Nodes)), numberCells(m.Allocatable, m.Requested, m.UsableFree, m.Pending),
		barCell(m.Numbers), numberCells(placeable(m.Fit)...))
}

// all is the row below the models.
func (o overview) all() g.Node {
	s := o.Sum
	return h.Tr(rowHead(g.Text("All")),
		plainCell(Number(s.Nodes)), numberCells(s.Allocatable, s.Requested, s.UsableFree, s.Pending.Devices),
		barCell(s.Numbers), numberCells(placeable(s.Fit)...))
}
