package page

import (
	"fmt"
	"math"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// bar shows numbers in proportion, each part in hundredths of its width.
type bar struct {
	Parts []part
	Label string
}

type part struct {
	Class       string
	From, Width float64
}

func barOf(n count.Numbers) bar {
	values := []struct {
		class string
		n     int64
	}{
		{"used", n.Requested - n.Overcommitted}, {"over", n.Overcommitted}, {"free", n.UsableFree}, {"shut", n.Free - n.UsableFree},
	}
	total := 0.0
	for _, v := range values {
		total += float64(max(0, v.n))
	}
	b := bar{Label: fmt.Sprintf("%s of %s requested, %s usable", Number(n.Requested), Number(n.Allocatable), Number(n.UsableFree))}
	if n.Overcommitted > 0 {
		b.Label += ", " + Number(n.Overcommitted) + " overcommitted"
	}
	at := 0.0
	for _, v := range values {
		if v.n > 0 {
			width := math.Round(float64(v.n)/total*1000) / 10
			b.Parts = append(b.Parts, part{v.class, at, width})
			at += width
		}
	}
	return b
}

// barCell is the last in a row of numbers.
func barCell(n count.Numbers) g.Node { return h.Td(h.Class("wide"), barOf(n).draw()) }

func (b bar) draw() g.Node {
	return h.SVG(h.Class("bar"), g.Attr("viewBox", "0 0 100 10"), g.Attr("preserveAspectRatio", "none"), h.Role("img"), h.Aria("label", b.Label),
		g.El("rect", h.Class("ground"), h.Width("100"), h.Height("10")),
		g.Map(b.Parts, part.draw))
}

func (p part) draw() g.Node {
	return g.El("rect", h.Class(p.Class), g.Attr("x", fmt.Sprint(p.From)), h.Width(fmt.Sprint(p.Width)), h.Height("10"))
}
