package page

import (
	"net/url"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// overview is what there is of a resource in the whole cluster.
type overview struct {
	Resource   string
	Resources  []link
	NodesKnown bool
	Sum        count.Summary
	Reasons    []reason
	Plots      []plot
	Field      field
	DRA        *count.DRAStatus
	Observed   []string
}

// reason is why a part of the demand waits.
type reason struct {
	count.Reason
	Words, Address string
}

func overviewPage(v api.View, p *api.Parameters) Page {
	resource := resourceOf(v.Snapshot, p.Text("resource"))
	sum := v.Snapshot.Of(resource)
	all := api.Selection{Resource: resource}
	o := overview{
		Resource: resource, Resources: resourceLinks(v.Snapshot, "", resource), NodesKnown: v.Snapshot.NodesKnown, Sum: sum, DRA: v.Snapshot.DRA,
		Reasons: reasons(sum), Plots: plots(v.History.Of(resource), v.Snapshot.NodesKnown, time.Now()),
		Field: fieldFor(v.Snapshot, all, "", len(all.Rows(v.Snapshot))), Observed: observed(v.Snapshot.Observed),
	}
	return Page{Body: o.body()}
}

func reasons(sum count.Summary) (out []reason) {
	for _, r := range sum.Pending.Reasons {
		to := address("pending", url.Values{"resource": {sum.Resource}, "reason": {r.Wait.String()}})
		out = append(out, reason{r, words(r.Wait), to})
	}
	return out
}

// words say why pods wait.
func words(w count.Wait) string {
	switch w {
	case count.Unschedulable:
		return "fit nowhere"
	case count.Untried:
		return "not tried yet"
	case count.Gated:
		return "held by a gate"
	case count.Nominated:
		return "others are evicted"
	}
	return w.String()
}

// observed lists what the numbers were computed from.
func observed(o count.Observed) (stores []string) {
	for _, store := range []struct{ name, version string }{
		{"pods", o.Pods}, {"nodes", o.Nodes}, {"deviceclasses", o.Classes}, {"resourceslices", o.Slices}, {"resourceclaims", o.Claims},
	} {
		if store.version != "" {
			stores = append(stores, store.name+"@"+store.version)
		}
	}
	return stores
}

func (o overview) body() g.Node {
	return g.Group{
		chips(o.Resources),
		h.Div(h.ID("totals"), Live,
			h.H2(h.Class("hidden"), g.Text("Totals of "+o.Resource)),
			tiles(o.totals()),
			o.blindness(), o.draTrouble(),
		),
		o.models(),
		card("field", "Devices, by who holds them", o.Field.draw()),
		h.Div(h.Class("columns left"),
			liveCard("history", "Since this replica started", h.Div(h.Class("plots"), g.Map(o.Plots, plot.draw))),
			liveCard("waiting", "Why pods wait", o.waiting()),
		),
		o.sources(),
	}
}

// waiting is the table of reasons.
func (o overview) waiting() g.Node {
	if len(o.Reasons) == 0 {
		return soft("No pod waits for " + o.Resource + ".")
	}
	return h.Table(
		heads(head("Reason"), numberHead("Pods"), numberHead("Devices")),
		h.TBody(g.Map(o.Reasons, func(r reason) g.Node {
			return h.Tr(rowHead(to(r.Address, r.Words)), plainCell(Number(r.Pods)), numberCells(r.Devices))
		})))
}

// sources say where the numbers are from, and where else they are.
func (o overview) sources() g.Node {
	var stores g.Group
	for i, store := range o.Observed {
		stores = append(stores, g.If(i > 0, g.Text(" ")), h.Code(g.Text(store)))
	}
	return h.P(h.Class("hint"), h.ID("observed"), Live,
		g.Text("Counted from "), stores, g.Text(". The same as "), to("./api/v1/snapshot", "JSON"),
		g.Text("; "), to("./api/v1/openapi.json", "what else there is"), g.Text("."))
}
