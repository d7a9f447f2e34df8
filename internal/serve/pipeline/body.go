package pipeline

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

func (s shown) body() g.Node {
	return g.Group{
		h.P(h.ID("verdict"), page.Live, h.Role("status"), h.Class("verdict "+string(s.State)), g.Text(s.Headline)),
		h.Div(h.Class("card"), h.Div(h.Class("scroll"), h.ID("drawing"), page.Live, h.Data("poll", "./api/v1/pipeline"), picture(s.Boxes))),
		g.Map(s.Sections, Section.draw),
		h.P(h.Class("hint"),
			g.Text("The same as JSON is at "), h.A(h.Href("./api/v1/pipeline"), g.Text("api/v1/pipeline")),
			g.Text(", and every number is in "), h.A(h.Href("./metrics"), g.Text("metrics")), g.Text(".")),
	}
}

func (s Section) draw() g.Node {
	title := s.Component + "-title"
	return h.Section(h.Class("card component-of"), h.ID(s.Component), h.Aria("labelledby", title),
		h.H2(h.ID(title), g.Text(s.Title)),
		h.P(h.Class("soft"), g.Text(s.Does)),
		h.P(h.ID(s.Component+"-state"), page.Live, h.Span(h.Class("is "+string(s.State)), g.Text(string(s.State))), g.Text(" "+s.Reason)),
		h.P(h.Class("hint"), g.Text(s.Rule)),
		h.Div(h.Class("scroll"), h.Table(s.columns(), h.TBody(g.Map(s.Rows, s.row)))),
	)
}

// numeric marks cells of numbers that stand below each other.
var numeric = h.Class("num")

func (s Section) columns() g.Node {
	if len(s.Columns) == 0 {
		return nil
	}
	return h.THead(h.Tr(h.Th(h.Scope("col"), g.Text("Number")), g.Map(s.Columns, func(resource string) g.Node {
		return h.Th(h.Scope("col"), numeric, g.Text(resource))
	})))
}

// row has what the number means behind its name, for those who open it.
func (s Section) row(r Row) g.Node {
	var values g.Group
	for i, value := range r.Values {
		values = append(values, h.Td(h.ID(r.ID+"-"+strconv.Itoa(i)), page.Live, g.If(len(s.Columns) > 0, numeric), g.Text(value)))
	}
	return h.Tr(
		h.Th(h.Scope("row"), h.Details(h.Summary(g.Text(r.Name)),
			h.P(h.Class("hint"), g.Text(r.Climbs+" "), h.A(h.Href("./metrics"), h.Code(g.Text(r.Metric)))))),
		values)
}
