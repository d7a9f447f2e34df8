package page

import (
	"math"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// perPage is how many rows a table has at most. With 65,000 nodes a page is no larger
// than with a hundred.
const perPage = 100

// firstOf are as many items as a table has rows, and how many there are beyond.
func firstOf[T any](items []T) (shown []T, more int) {
	shown = items[:min(len(items), perPage)]
	return shown, len(items) - len(shown)
}

// pager is where a long table can be turned to.
type pager struct {
	First, Last, Total int // the first and last item shown, from 1
	Before, After      string
}

// turn picks the items of the page that is asked for.
func turn[T any](p *api.Parameters, items []T, to func(page string) string) ([]T, pager) {
	pages := max(1, (len(items)+perPage-1)/perPage)
	// There may have been more of them when the reader was sent here.
	at := min(int(p.Number("page", 1, 1, math.MaxInt32)), pages)
	from, until := (at-1)*perPage, min(at*perPage, len(items))
	out := pager{First: from + 1, Last: until, Total: len(items)}
	if at > 1 {
		out.Before = to(strconv.Itoa(at - 1))
	}
	if at < pages {
		out.After = to(strconv.Itoa(at + 1))
	}
	return items[from:until], out
}

func (p pager) draw() g.Node {
	turned := func(address, rel, label string) g.Node {
		return g.If(address != "", g.Group{g.Text(" "), h.A(h.Href(address), h.Rel(rel), g.Text(label))})
	}
	return h.Nav(h.Class("pages"), h.Aria("label", "Parts of the table"),
		g.If(p.Total > 0, h.Span(h.Class("soft"), g.Textf("%s to %s of %s", Number(p.First), Number(p.Last), Number(p.Total)))),
		turned(p.Before, "prev", "Before"),
		turned(p.After, "next", "After"),
	)
}
