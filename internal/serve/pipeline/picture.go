package pipeline

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Places in a box, in the units of the drawing.
const (
	indent     = 18
	firstLine  = 54
	lineHeight = 20
)

// arrow is what flows from one component to another. Words stand beside it.
type arrow struct {
	class, path string
	words       []word
}

type word struct {
	x, y   int
	anchor string // "middle", or "" for one that begins at x
	text   string
}

var arrows = []arrow{
	{"flow", "M140 99H202", []word{{171, 80, "middle", "list and"}, {171, 93, "middle", "watch"}}},
	{"flow", "M430 99H487", nil},
	{"flow", "M710 99H767", nil},
	{"flow", "M600 158V247", []word{{608, 200, "", "handlers: a key"}, {608, 214, "", "and nothing else"}}},
	{"flow", "M895 158V247", []word{{903, 207, "", "reads"}}},
	{"flow", "M710 290H767", []word{{738, 281, "middle", "key"}}},
	{"flow back", "M770 340H713", []word{{741, 357, "middle", "error"}}},
	{"flow", "M1020 309H1077", []word{{1048, 289, "middle", "what"}, {1048, 302, "middle", "differs"}}},
	{"flow back", "M317 368V392H895V371", []word{{605, 386, "middle", "whose turn it is"}}},
}

// tip is that of an arrow.
const tip = `<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">` +
	`<path class="tip" d="M0 0L10 5L0 10z"/></marker></defs>`

// picture has the components as boxes with what flows between them.
func picture(boxes []Box) g.Node {
	return h.SVG(h.Class("pipeline"), g.Attr("viewBox", "0 0 1215 410"), h.Role("img"), h.Aria("label", "The five components and the lease, in the flow of the data"),
		g.Raw(tip),
		outside("API server", 10, 40, 130, 75),
		g.Map(arrows, arrow.draw),
		outside("ConfigMaps", 1080, 250, 125, 1142),
		g.Map(boxes, Box.draw))
}

// outside is a box of what is not part of the process. All boxes are as high.
func outside(name string, x, y, width, middle int) g.Node {
	return g.Group{
		rect(x, y, width, boxHeight, 8, h.Class("outside")),
		text("name", word{middle, y + 64, "middle", name}),
	}
}

func (a arrow) draw() g.Node {
	return g.Group{
		g.El("path", h.Class(a.class), g.Attr("d", a.path), g.Attr("marker-end", "url(#tip)")),
		g.Map(a.words, func(w word) g.Node { return text("say", w) }),
	}
}

func (b Box) draw() g.Node {
	var lines g.Group
	for i, line := range b.Lines {
		lines = append(lines, text("", word{b.X + indent, b.Y + firstLine + i*lineHeight, "", line}))
	}
	return h.A(h.Href("#"+b.Component), g.El("g", h.Class("component "+string(b.State)),
		g.El("title", g.Text(b.Reason)),
		rect(b.X, b.Y, b.W, boxHeight, 8),
		rect(b.X, b.Y, 6, boxHeight, 3, h.Class("edge")),
		text("name", word{b.X + indent, b.Y + 26, "", b.Title}),
		text("status", word{b.X + b.W - 12, b.Y + 26, "end", string(b.State)}),
		lines))
}

// rect has corners of a radius.
func rect(x, y, width, height, radius int, attributes ...g.Node) g.Node {
	return g.El("rect", g.Group(attributes), units("x", x), units("y", y), units("width", width), units("height", height), units("rx", radius))
}

func text(class string, w word) g.Node {
	return g.El("text", g.If(class != "", h.Class(class)), units("x", w.x), units("y", w.y), g.If(w.anchor != "", g.Attr("text-anchor", w.anchor)), g.Text(w.text))
}

func units(attribute string, n int) g.Node { return g.Attr(attribute, strconv.Itoa(n)) }
