package page

import (
	"fmt"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// plot is a small line over time.
type plot struct {
	Class, Label string
	Now, Most    int64
	Line, Area   string
	Since        time.Time
}

const plotWidth, plotHeight = 300.0, 60.0

func plots(points []api.Point, nodesKnown bool, now time.Time) []plot {
	if len(points) == 0 {
		return nil
	}
	lines := []struct {
		class, label string
		of           func(api.Point) int64
	}{
		{"requested", "Requested", func(p api.Point) int64 { return p.Requested }},
		{"free", "Usable free", func(p api.Point) int64 { return p.Free }},
		{"pending", "Pending", func(p api.Point) int64 { return p.Pending }},
	}
	var out []plot
	for _, l := range lines {
		if nodesKnown || l.class != "free" {
			out = append(out, plotOf(points, now, l.class, l.label, l.of))
		}
	}
	return out
}

// plotOf draws a value that holds until the next point, the last one until now.
func plotOf(points []api.Point, now time.Time, class, label string, of func(api.Point) int64) plot {
	p := plot{Class: class, Label: label, Now: of(points[len(points)-1]), Since: points[0].At}
	for _, point := range points {
		p.Most = max(p.Most, of(point))
	}
	// The time up to now is rounded, so that the page is not another one each second.
	span := max(10*time.Second, now.Sub(p.Since).Truncate(10*time.Second)).Seconds()
	y := func(n int64) float64 { return plotHeight - float64(max(0, n))/float64(max(1, p.Most))*plotHeight }
	var path strings.Builder
	fmt.Fprintf(&path, "M0 %.1f", y(of(points[0])))
	for _, point := range points[1:] {
		x := min(1, point.At.Sub(p.Since).Seconds()/span) * plotWidth
		fmt.Fprintf(&path, "H%.1fV%.1f", x, y(of(point)))
	}
	fmt.Fprintf(&path, "H%.0f", plotWidth)
	p.Line = path.String()
	p.Area = p.Line + fmt.Sprintf("V%.0fH0Z", plotHeight)
	return p
}

func (p plot) draw() g.Node {
	path := func(class, d string) g.Node { return g.El("path", h.Class(class), g.Attr("d", d)) }
	said := fmt.Sprintf("now %s, at most %s", Number(p.Now), Number(p.Most))
	return h.Figure(
		h.FigCaption(h.Span(g.Text(p.Label)), h.Span(g.Text(said))),
		h.SVG(h.Class("plot"), g.Attr("viewBox", "0 0 300 60"), g.Attr("preserveAspectRatio", "none"), h.Role("img"),
			h.Aria("label", fmt.Sprintf("%s since %s: %s", p.Label, clock(p.Since), said)),
			g.Raw(`<line x1="0" y1="60" x2="300" y2="60"/>`),
			path("area "+p.Class, p.Area), path(p.Class, p.Line)),
		h.Div(h.Class("axis"), moment(p.Since), h.Span(g.Text("now"))),
	)
}

// moment is a time for people and for scripts.
func moment(at time.Time) g.Node { return h.Time(h.DateTime(instant(at)), g.Text(clock(at))) }
