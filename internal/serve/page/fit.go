package page

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// fit answers how many pods could start now.
type fit struct {
	count.Ask
	count.Placement
	Resources []string
	Models    []string
}

func fitPage(v api.View, p *api.Parameters) Page {
	if !v.Snapshot.NodesKnown {
		return trouble(http.StatusNotImplemented, "There is no answer to that here:", api.NodesUnknown)
	}
	a := api.ReadAsk(p)
	if p.Err() != nil {
		return Page{} // that is said instead
	}
	a.Resource = resourceOf(v.Snapshot, p.Text("resource"))
	f := fit{Ask: a, Placement: v.Snapshot.Place(a), Resources: resources(v.Snapshot)}
	for _, sum := range v.Snapshot.Summaries {
		for _, m := range sum.Models {
			if !slices.Contains(f.Models, m.Name) && len(f.Models) < perPage {
				f.Models = append(f.Models, m.Name)
			}
		}
	}
	slices.Sort(f.Models)
	return Page{Body: f.body()}
}

func (f fit) body() g.Node {
	return g.Group{
		f.question(),
		h.Div(h.ID("answer"), Live,
			h.Section(h.Class("card"), h.H2(g.Text("Answer")), f.answer()),
			h.Div(h.Class("columns"),
				card("places", "Where they would go", f.places()),
				card("obstacles", "Why not on the others", f.obstacles()))),
	}
}

func (f fit) question() g.Node {
	amount := func(name, label, most string, value int64) g.Node {
		return fieldOf(name, label, h.Input(h.ID(name), h.Name(name), h.Type("number"), h.Min("1"), h.Max(most), h.Required(), h.Value(strconv.FormatInt(value, 10))))
	}
	return filter("./fit",
		amount("pods", "Pods", "10000", f.Pods),
		amount("gpus", "Devices each", "1000000", f.Devices),
		selection("model", "Model", anyOf(f.Model, choicesOf(f.Models))),
		selection("resource", "Resource", oneOf(f.Resource, choicesOf(f.Resources))),
		h.Button(g.Text("Would they fit?")))
}

func (f fit) answer() g.Node {
	yes := f.Placeable >= f.Pods
	says := Number(f.Placeable) + either(f.Placeable == 1, " pod of ", " pods of ") + Number(f.Devices) + " " + f.Resource
	if f.Model != "" {
		says += " on " + f.Model
	}
	says += " could start now; " + Number(f.Pods) + either(f.Pods == 1, " is", " are") + " asked for."
	return g.Group{
		h.P(h.Class(either(yes, "answer yes", "answer no")), h.Strong(g.Text(either(yes, "Yes.", "No."))), g.Text(" "+says)),
		hint("By devices alone: processors, memory, affinity and quotas are not looked at. If all " + Number(f.Placeable) +
			" started, " + Number(f.Stranded) + " free devices would be left over."),
	}
}

func (f fit) places() g.Node {
	shown, more := firstOf(f.Places)
	if len(shown) == 0 {
		return soft("Nowhere.")
	}
	says := "Nodes on which the least is left over come first. The scheduler may choose others."
	if more > 0 {
		says = Plural(more, "more node") + " not shown. " + says
	}
	return g.Group{
		h.Table(
			heads(head("Node"), head("Model"), numberHead("Pods")),
			h.TBody(g.Map(shown, func(p count.Place) g.Node {
				return h.Tr(rowHead(to(address("node", url.Values{"name": {p.Node}}), p.Node)), textCell(p.Model), numberCells(p.Pods))
			}))),
		hint(says),
	}
}

func (f fit) obstacles() g.Node {
	if len(f.Obstacles) == 0 {
		return soft("There are none.")
	}
	return h.Table(
		heads(head("Reason"), numberHead("Nodes"), numberHead("Free devices")),
		h.TBody(g.Map(f.Obstacles, func(o count.Obstacle) g.Node {
			return h.Tr(rowHead(g.Text(o.Reason)), plainCell(Number(o.Nodes)), numberCells(o.Free))
		})))
}
