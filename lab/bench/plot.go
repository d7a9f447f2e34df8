package bench

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Plot is a file with a picture that belongs to a table.
type Plot struct {
	// Of is the title of the table.
	Of, Title, File string
}

// plots are what is worth a picture.
var plots = []struct {
	file, title, scenario, metric string
}{
	{"cold-start-cpu.svg", "CPU time of a cold start", "cold-start", cpuQuietSeconds},
	{"cold-start-memory.svg", "Peak RSS of a cold start", "cold-start", peakBytes},
	{"irrelevant-cpu.svg", "CPU time per event that changes no number", "irrelevant", cpuPerEvent},
	{"gpu-cpu.svg", "CPU time per event of a GPU pod", "gpu", cpuPerEvent},
	{"latency-p50.svg", "From an event to the ConfigMap, p50", "latency", p50Seconds},
	{"bytes.svg", "Bytes written for one change", "bytes", bytesPerChange},
}

// WritePlots writes the pictures for which there is something into a directory.
func (r *Report) WritePlots(dir string) (written []Plot, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory for plots: %w", err)
	}
	for _, p := range plots {
		for _, l := range layouts {
			i := l.has(p.metric)
			if l.scenario != p.scenario || i < 0 {
				continue
			}
			bars := r.bars(p.scenario, p.metric)
			if len(bars) == 0 {
				continue
			}
			file := filepath.Join(dir, p.file)
			if err := os.WriteFile(file, []byte(drawBars(p.title, bars, l.columns[i].unit)), 0o644); err != nil {
				return nil, fmt.Errorf("write plot: %w", err)
			}
			written = append(written, Plot{Of: l.title, Title: p.title, File: file})
		}
	}
	return written, nil
}

// bar is one measurement in a picture; bars of one group stand together.
type bar struct {
	group string
	who   who
	stat  *Stat
}

func (r *Report) bars(scenario, metric string) (out []bar) {
	for _, result := range r.Results {
		if s := result.Metrics[metric]; result.Scenario == scenario && s != nil && s.Median > 0 {
			group := result.Size
			if result.Case != "" {
				group = result.Case
			}
			out = append(out, bar{group, result.Who, s})
		}
	}
	return out
}

// Colours that are legible on white and on black.
var colours = map[who]string{
	controller: "#2f81f7", drain: "#8b949e", textbook: "#d4762c", poll: "#b75dd6", bareUpdate: "#8b949e", stateMetrics: "#3fa05f",
}

const (
	plotWidth, labelWidth, valueWidth = 760, 150, 90
	barHeight, groupGap, top          = 18, 26, 44
)

// drawBars draws horizontal bars on a logarithmic scale, because what is compared differs by
// orders of magnitude, with a thin line from the least to the most.
func drawBars(title string, bars []bar, u unit) string {
	low, high := math.Inf(1), 0.0
	for _, b := range bars {
		low, high = min(low, b.stat.Min, b.stat.Median), max(high, b.stat.Max)
	}
	if low <= 0 {
		low = high / 1e6
	}
	floor := math.Pow(10, math.Floor(math.Log10(low)-0.2))
	room := float64(plotWidth - labelWidth - valueWidth)
	x := func(v float64) float64 {
		return labelWidth + room*math.Log10(max(v, floor)/floor)/math.Log10(max(high/floor, 1.0001))
	}
	var body strings.Builder
	y, group := float64(top), ""
	for _, b := range bars {
		if b.group != group {
			group = b.group
			fmt.Fprintf(&body, "<text class=\"group\" x=\"8\" y=\"%.0f\">%s</text>\n", y+14, html.EscapeString(group))
			y += groupGap
		}
		mid := y + barHeight/2
		fmt.Fprintf(&body, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">%s</text>\n", labelWidth-8, mid+4, html.EscapeString(string(b.who)))
		fmt.Fprintf(&body, "<rect x=\"%d\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" rx=\"2\" fill=\"%s\"/>\n", labelWidth, y, max(1, x(b.stat.Median)-labelWidth), barHeight-4, colours[b.who])
		if b.stat.Max > b.stat.Min {
			fmt.Fprintf(&body, "<path d=\"M%.1f %.1fH%.1f\" class=\"range\"/>\n", x(b.stat.Min), y+7, x(b.stat.Max))
		}
		fmt.Fprintf(&body, "<text x=\"%.1f\" y=\"%.0f\">%s</text>\n", x(b.stat.Max)+6, mid+4, html.EscapeString(u.format(b.stat.Median)))
		y += barHeight
	}
	height := int(y) + 14
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">
<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.group { font-weight: 600 }
.note { font-size: 11px; opacity: .7 }
.range { stroke: #1f2328; stroke-width: 1.2; fill: none }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .range { stroke: #e6edf3 } }
</style>
<text class="title" x="8" y="20">%s</text>
<text class="note" x="%d" y="20" text-anchor="end">median, logarithmic; the line is from the least to the most</text>
%s</svg>
`, plotWidth, height, plotWidth, height, html.EscapeString(title), html.EscapeString(title), plotWidth-8, body.String())
}
