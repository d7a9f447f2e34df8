package page

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

type overviewData struct {
	Resource   string
	Resources  []link
	NodesKnown bool
	Sum        count.Summary
	Bar        bar
	Sizes      []int64
	Models     []model
	More       int // models that are not shown
	Reasons    []reason
	Plots      []plot
	Field      field
	DRA        *count.DRAStatus
	Observed   []string
}

// model is a row of the table of models.
type model struct {
	count.Model
	Bar       bar
	Placeable []count.Size
	Address   string
}

// reason is why a part of the demand waits.
type reason struct {
	count.Reason
	Words, Address string
}

// tableSizes are the sizes of pods that the table of models has columns for.
var tableSizes = []int64{1, 2, 4, 8}

func overview(_ *Page, v api.View, p *api.Parameters) any {
	resource := resourceOf(v.Snapshot, p.Text("resource"))
	sum := v.Snapshot.Of(resource)
	d := overviewData{
		Resource: resource, Resources: resources(v.Snapshot, "", resource), NodesKnown: v.Snapshot.NodesKnown,
		Sum: sum, Bar: barOf(sum.Numbers), Sizes: tableSizes,
		Plots: plots(v.History.Of(resource), v.Snapshot.NodesKnown, time.Now()), DRA: v.Snapshot.DRA,
		Field: fieldOf(v.Snapshot, api.Selection{Resource: resource}, ""), Observed: observed(v.Snapshot.Observed),
	}
	for i, m := range sum.Models {
		if i == perPage {
			d.More = len(sum.Models) - perPage
			break
		}
		d.Models = append(d.Models, model{
			Model: m, Bar: barOf(m.Numbers), Placeable: sizes(m.Fit),
			Address: address("nodes", url.Values{"resource": {resource}, "model": {m.Name}}),
		})
	}
	for _, r := range sum.Pending.Reasons {
		d.Reasons = append(d.Reasons, reason{r, words(r.Wait), address("pending", url.Values{"resource": {resource}, "reason": {r.Wait.String()}})})
	}
	return d
}

// sizes picks those that the table has columns for. A fit without any nodes has none.
func sizes(f count.Fit) []count.Size {
	out := make([]count.Size, len(tableSizes))
	for i, devices := range tableSizes {
		if at := slices.IndexFunc(f.Sizes, func(s count.Size) bool { return s.Devices == devices }); at >= 0 {
			out[i] = f.Sizes[at]
		}
	}
	return out
}

// Total is the row below the models.
func (d overviewData) Total() []count.Size { return sizes(d.Sum.Fit) }

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
	b := bar{Label: fmt.Sprintf("%s of %s requested, %s usable", number(n.Requested), number(n.Allocatable), number(n.UsableFree))}
	if n.Overcommitted > 0 {
		b.Label += ", " + number(n.Overcommitted) + " overcommitted"
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
