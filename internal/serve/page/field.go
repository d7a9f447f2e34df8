package page

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

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

// fieldFor is the field of a selection, of which there are so many rows.
func fieldFor(snap *count.Snapshot, s api.Selection, sort string, rows int) field {
	query := url.Values{"holders": {"true"}}
	for name, value := range map[string]string{"node": s.Node, "resource": s.Resource, "model": s.Model, "state": s.State, "contains": s.Contains} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return field{Query: query.Encode(), Sort: sort, Nodes: rows, Holders: holders(snap.Of(s.Resource), nil)}
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

// patterns are what the script fills cells with that nobody can have.
const patterns = `<svg class="patterns" width="0" height="0" aria-hidden="true"><defs>` +
	`<pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="stripe" width="1.2" height="4"/></pattern>` +
	`<pattern id="hatch2" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="gap" width="1.8" height="5"/></pattern>` +
	`</defs></svg>`

func (f field) draw() g.Node {
	return h.Div(h.Class("field"), g.Attr("data-field"), h.Data("query", f.Query), h.Data("sort", f.Sort), h.Data("nodes", strconv.Itoa(f.Nodes)),
		h.Ul(h.Class("legend"), g.Attr("data-legend"), g.Map(f.Holders, holder.draw)),
		h.P(h.Class("hint"), g.Attr("data-note"), h.NoScript(g.Text("The cells are drawn by a script. The tables have the same numbers."))),
		g.Raw(patterns),
		h.Div(h.Class("cells"), g.Attr("data-cells")),
	)
}

// draw leaves room for how many devices are held, which the script fills in.
func (o holder) draw() g.Node {
	colour := strconv.Itoa(o.Colour)
	return h.Li(h.Data("holder", o.Name), h.Data("colour", colour),
		h.SVG(h.Width("11"), h.Height("11"), h.Aria("hidden", "true"), g.El("rect", h.Class("c"+colour), h.Width("11"), h.Height("11"))),
		h.Span(g.Text(o.Name)), g.Text(" "), h.B(),
	)
}
