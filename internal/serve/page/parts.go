package page

import (
	"cmp"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// card is a part of a page that is called as its heading says.
func card(name, heading string, content ...g.Node) g.Node {
	title := name + "-title"
	return h.Section(h.Class("card"), h.Aria("labelledby", title), h.H2(h.ID(title), g.Text(heading)), g.Group(content))
}

// liveCard is one that is kept up to date.
func liveCard(name, heading string, content ...g.Node) g.Node {
	return card(name, heading, h.ID(name), Live, g.Group(content))
}

func hint(text string) g.Node { return h.P(h.Class("hint"), g.Text(text)) }
func soft(text string) g.Node { return h.P(h.Class("soft"), g.Text(text)) }

// tile is a number that is large enough to be seen from afar.
type tile struct {
	Label, ID string
	Number    int64
	Small     string // what is said below
	Bad       bool
}

func (t tile) draw() g.Node {
	return h.Div(h.Class(either(t.Bad, "tile bad", "tile")),
		h.Dt(g.Text(t.Label)),
		h.Dd(g.If(t.ID != "", h.ID(t.ID)), g.Text(Number(t.Number))),
		h.Dd(h.Class("small"), g.Text(t.Small)))
}

func tiles(all []tile) g.Node { return h.Dl(h.Class("tiles"), g.Map(all, tile.draw)) }

// link is an entry of a list of them.
type link struct {
	Label, Address string
	Current        bool
}

func (l link) draw(attributes ...g.Node) g.Node {
	return h.A(g.Group(attributes), h.Href(l.Address), g.If(l.Current, h.Aria("current", "page")), g.Text(l.Label))
}

// to links to an address.
func to(address, label string) g.Node { return link{Label: label, Address: address}.draw() }

// chips are links to the same page for each resource, nothing if there is only one.
func chips(links []link) g.Node {
	if len(links) == 0 {
		return nil
	}
	return h.Nav(h.Aria("label", "Resources"), h.Ul(h.Class("chips"), g.Map(links, func(l link) g.Node {
		return h.Li(l.draw(h.Class("chip")))
	})))
}

// choice is one of a list to choose from. Its value is its label unless set.
type choice struct{ Value, Label string }

func choicesOf(labels []string) (choices []choice) {
	for _, label := range labels {
		choices = append(choices, choice{Label: label})
	}
	return choices
}

// anyOf are the choices and that of none.
func anyOf(chosen string, choices []choice) g.Node {
	return g.Group{h.Option(h.Value(""), g.Text("any")), oneOf(chosen, choices)}
}

func oneOf(chosen string, choices []choice) g.Node {
	return g.Map(choices, func(c choice) g.Node {
		return h.Option(g.If(c.Value != "", h.Value(c.Value)), g.If(cmp.Or(c.Value, c.Label) == chosen, h.Selected()), g.Text(c.Label))
	})
}

// filter is a form that asks for the same page with other parameters.
func filter(page string, content ...g.Node) g.Node {
	return h.Form(h.Class("filter"), h.Method("get"), h.Action(page), g.Group(content))
}

func fieldOf(name, label string, input g.Node) g.Node {
	return h.Div(h.Class("field-of"), h.Label(h.For(name), g.Text(label)), input)
}

// selection is a field of a form with a list to choose from.
func selection(name, label string, options g.Node) g.Node {
	return fieldOf(name, label, h.Select(h.ID(name), h.Name(name), options))
}

func hidden(name, value string) g.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

// off is a state that is not the usual one.
func off(state string) g.Node { return h.Span(h.Class("state off"), g.Text(state)) }

// states are those of a node.
func states(all []count.State) g.Node {
	if len(all) == 0 {
		return h.Span(h.Class("state ok"), g.Text("takes pods"))
	}
	return g.Map(all, func(s count.State) g.Node { return g.Group{off(s.Words()), g.Text(" ")} })
}

// byDRA marks rows of devices that a DRA driver hands out.
func byDRA(r count.Row) g.Node {
	return g.If(r.Source == count.DynamicResources, g.Group{g.Text(" "), off("DRA")})
}

// shared says of how many parts each device is.
func shared(r count.Row) g.Node {
	return g.If(r.Replicas != 0, g.Group{g.Text(" "), h.Span(h.Class("soft"), g.Text("shared × "+Number(r.Replicas)))})
}
