package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// column is a metric in a table.
type column struct {
	metric, title string
	unit          unit
}

// layout is the table of one scenario.
type layout struct {
	scenario, title, caseTitle string
	columns                    []column
	// notes stand below the table.
	notes string
}

var coldColumns = []column{
	{wallSeconds, "wall", inSeconds}, {cpuSeconds, "CPU until right", inSeconds}, {cpuQuietSeconds, "CPU until at rest", inSeconds},
	{peakBytes, "peak RSS", inBytes}, {heapBytes, "live heap", inBytes}, {serverSeconds, "CPU of the server", inSeconds}, {wireBytes, "received", inBytes},
}

var layouts = []layout{
	{scenario: "cold-start", title: "From nothing to the first right summary", columns: coldColumns},
	{scenario: "wire", title: "TLS and gzip", caseTitle: "server", columns: coldColumns},
	{scenario: "fallback", title: "Servers that lack something", caseTitle: "server", columns: coldColumns},
	{scenario: "lab", title: "A real control plane", columns: coldColumns},
	{scenario: "heap", title: "Live heap per pod", columns: []column{
		{heapPerPlainPod, "per pod without GPUs", inBytes}, {heapPerGPUPod, "per GPU pod", inBytes}, {heapBytes, "with no pods", inBytes},
	}},
	{scenario: "irrelevant", title: "Events that change no number", columns: []column{
		{cpuPerEvent, "CPU per event", inSeconds}, {writesDuring, "ConfigMap writes", inNumbers}, {peakAfter, "peak RSS after it", inBytes},
	}},
	{scenario: "gpu", title: "Events that change a number", columns: []column{
		{cpuPerEvent, "CPU per event of a GPU pod", inSeconds}, {cpuPerPublish, "CPU per event with its publish", inSeconds},
	}},
	{scenario: "latency", title: "From an event to the ConfigMap at a watcher", caseTitle: "pod changes", columns: []column{
		{p50Seconds, "p50", inSeconds}, {p99Seconds, "p99", inSeconds}, {samples, "samples per run", inNumbers},
	}, notes: "The controller writes at once after quiet, and at most once in each `--settle` (1 s, the default) after that: under load a change waits half of that on average."},
	{scenario: "quiet", title: "An hour in which nothing changes", caseTitle: "duration", columns: []column{
		{requestsPerHour, "requests", inNumbers}, {bytesPerHour, "bytes", inBytes}, {writesPerHour, "ConfigMap writes", inNumbers}, {cpuPerHour, "CPU", inSeconds},
	}, notes: "Measured once and for the stated time, and multiplied: a watch is begun anew every five to ten minutes, and a bookmark comes each minute."},
	{scenario: "bytes", title: "Written for one change", columns: []column{
		{bytesPerChange, "bytes", inBytes}, {writesPerChange, "writes", inNumbers}, {cpuPerPublish, "CPU", inSeconds},
	}},
}

// table is text in rows.
type table struct {
	title, notes string
	head         []string
	rows         [][]string
}

// tables are all that have something in them.
func (r *Report) tables() (out []table) {
	if len(r.Targets) > 0 {
		out = append(out, r.targetTable())
	}
	for _, l := range layouts {
		if t := r.table(l); len(t.rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

func (r *Report) table(l layout) table {
	t := table{title: l.title, notes: l.notes, head: []string{"cluster"}}
	if l.caseTitle != "" {
		t.head = append(t.head, l.caseTitle)
	}
	t.head = append(t.head, "")
	for _, c := range l.columns {
		t.head = append(t.head, c.title)
	}
	for _, result := range r.Results {
		if result.Scenario != l.scenario {
			continue
		}
		row := []string{result.Size}
		if l.caseTitle != "" {
			row = append(row, result.Case)
		}
		row = append(row, string(result.Who))
		for _, c := range l.columns {
			row = append(row, c.unit.show(result.Metrics[c.metric]))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func (r *Report) targetTable() table {
	t := table{title: "Targets", head: []string{"", "measured", "target", "aim", ""}}
	for _, target := range r.Targets {
		sign, verdict := "≤ ", "missed"
		if target.AtLeast {
			sign = "≥ "
		}
		if target.AimMet {
			verdict = "aim met"
		} else if target.Met {
			verdict = "met"
		}
		t.rows = append(t.rows, []string{target.Name, target.Unit.format(target.Value), sign + target.Unit.format(target.Limit), sign + target.Unit.format(target.Aim), verdict})
	}
	return t
}

// Conditions says where and when it was measured, in a few lines.
func (r *Report) Conditions() string {
	low, high := r.loads()
	runs := "each measured once"
	if r.Runs > 1 {
		runs = fmt.Sprintf("medians of %d runs, in brackets the least and the most", r.Runs)
	}
	text := fmt.Sprintf("%s, %d cores, %s of memory, Linux %s, %s. %s to %s UTC; %s; load average before a run %.1f to %.1f. %s.",
		r.Machine.CPU, r.Machine.Cores, inBytes.format(r.Machine.Memory), r.Machine.Kernel, r.Machine.Go,
		r.Started.UTC().Format("2006-01-02 15:04"), r.Ended.UTC().Format("15:04"), runs, low, high, r.Controller)
	if len(r.Skipped) > 0 {
		text += "\n\nLeft out:\n\n- " + strings.Join(r.Skipped, "\n- ")
	}
	return text
}

// WriteTable writes everything for a terminal.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "%s\n\n", t.title)
		widths := make([]int, len(t.head))
		lines := append([][]string{t.head}, t.rows...)
		for _, line := range lines {
			for i, cell := range line {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
		for _, line := range lines {
			var text strings.Builder
			for i, cell := range line {
				text.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
			fmt.Fprintln(&b, strings.TrimRight(text.String(), " "))
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintln(&b, r.Conditions())
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown writes everything for a document. plots are files of SVG by title.
func (r *Report) WriteMarkdown(w io.Writer, plots []Plot) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Conditions())
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n### %s\n\n", t.title)
		for _, p := range plots {
			if p.Of == t.title {
				fmt.Fprintf(&b, "![%s](%s)\n\n", p.Title, p.File)
			}
		}
		fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(t.head, " | "), strings.Repeat("---|", len(t.head)))
		for _, row := range t.rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
		if t.notes != "" {
			fmt.Fprintf(&b, "\n%s\n", t.notes)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (l layout) has(metric string) int {
	return slices.IndexFunc(l.columns, func(c column) bool { return c.metric == metric })
}
