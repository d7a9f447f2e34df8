package page

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// wide is a table that may be wider than the window. Its box can then be scrolled, with
// the keyboard too.
func wide(what string, parts ...g.Node) g.Node {
	return h.Div(h.Class("scroll"), h.TabIndex("0"), h.Role("region"), h.Aria("label", what+", a wide table"), h.Table(parts...))
}

// heads is the first row, of which each cell is a head or a numberHead.
func heads(cells ...g.Node) g.Node { return h.THead(h.Tr(cells...)) }

func head(label string) g.Node { return h.Th(h.Scope("col"), g.Text(label)) }

func numberHead(label string) g.Node { return h.Th(h.Scope("col"), numeric, g.Text(label)) }

// rowHead is the cell that says what the row is about.
func rowHead(content ...g.Node) g.Node { return h.Th(h.Scope("row"), g.Group(content)) }

func textCell(text string) g.Node { return h.Td(g.Text(text)) }

var numeric = h.Class("num")

// plainCell is for a number of which zero is as good as another.
func plainCell(text string) g.Node { return h.Td(numeric, g.Text(text)) }

// numberCells are for numbers of devices, or of pods. Zero is pale.
func numberCells(numbers ...int64) g.Group {
	return g.Map(numbers, func(n int64) g.Node {
		return h.Td(h.Class(either(n == 0, "num zero", "num")), g.Text(Number(n)))
	})
}

// badCell is for a number that should be zero.
func badCell(n int64) g.Node {
	return h.Td(h.Class(either(n == 0, "num zero", "num bad")), g.Text(Number(n)))
}

// remark is a row of one sentence.
func remark(columns int, sentence string) g.Node {
	return h.Tr(h.Td(h.ColSpan(strconv.Itoa(columns)), h.Class("soft"), g.Text(sentence)))
}
