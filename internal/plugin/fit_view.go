package plugin

import (
	"fmt"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/fit"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// fitDocument is what JSON and YAML have.
type fitDocument struct {
	SchemaVersion string           `json:"schemaVersion"`
	Answers       []fit.Answer     `json:"answers"`
	DRA           *count.DRAStatus `json:"dra,omitempty"`
}

func fitView(r *reading, answers []fit.Answer, isWide bool) *view {
	v := &view{document: fitDocument{publish.SchemaVersion, answers, r.snapshot.DRA}, notes: r.notes, csv: fitNodes(answers)}
	seen := make(map[string]bool)
	for i := range answers {
		a := &answers[i]
		t := table{after: append([]string{headline(a, len(answers) > 1)}, reasons(a)...)}
		if of := fitNodes(answers[i : i+1]); isWide && len(of.rows) > 0 {
			t = table{title: t.after[0], columns: of.columns, rows: of.rows, after: t.after[1:]}
		}
		v.tables = append(v.tables, t)
		for _, p := range a.Placements {
			if name := "node/" + p.Node; !seen[name] {
				seen[name] = true
				v.names = append(v.names, name)
			}
		}
		for _, note := range a.Notes {
			if len(answers) > 1 {
				note = a.Question + ": " + note
			}
			v.notes = append(v.notes, note)
		}
	}
	return v
}

// headline is the answer in a line.
func headline(a *fit.Answer, named bool) string {
	var b strings.Builder
	if named {
		b.WriteString(a.Question + ": ")
	}
	fmt.Fprintf(&b, "%d of %d ", a.Placed, a.Copies)
	switch {
	case a.Verdict == fit.Unknown:
		b.WriteString("copies may fit, it depends on claims")
	case a.Placed == 1 && a.Copies == 1:
		b.WriteString("copy fits")
	default:
		b.WriteString("copies fit")
	}
	var nodes []string
	for _, p := range a.Placements {
		nodes = append(nodes, fmt.Sprintf("%s ×%d", p.Node, p.Copies))
	}
	if len(nodes) > 0 {
		b.WriteString(": " + list(nodes))
	}
	return b.String()
}

// reasons says why no more fit; if all do, how many more would.
func reasons(a *fit.Answer) (out []string) {
	if a.Placed >= a.Copies {
		if a.Room > a.Copies {
			out = append(out, fmt.Sprintf("There is room for %d.", a.Room))
		}
		return out
	}
	if len(a.Refusals) == 0 {
		return []string{"There are no nodes."}
	}
	out = append(out, "No more, because of:")
	if a.Placed == 0 {
		out[0] = "None, because of:"
	}
	for _, r := range a.Refusals {
		line := "  " + r.Message
		if r.Reason != fit.NoDevices && len(r.Nodes) <= fewNodes {
			line += ": " + strings.Join(r.Nodes, ", ")
		}
		out = append(out, line)
	}
	return out
}

// fewNodes is how many nodes are named in a line; -o wide has all of them.
const fewNodes = 3

// fitNodes is the answer node by node. A terminal has it with -o wide alone.
func fitNodes(answers []fit.Answer) *table {
	t := &table{columns: []column{
		{title: "QUESTION", field: "question", shown: csvOnly},
		{title: "NODE", field: "node", shown: wide, cut: true},
		{title: "MODEL", field: "model", shown: wide, cut: true},
		{title: "SOURCE", field: "source", shown: csvOnly},
		{title: "ALLOCATABLE", field: "allocatable", shown: wide, right: true},
		{title: "FREE", field: "free", shown: wide, right: true},
		{title: "COPIES", field: "copies", shown: wide, right: true},
		{title: "WHY NO MORE", field: "message", shown: wide},
		{title: "REASONS", field: "reasons", shown: csvOnly},
	}}
	for i := range answers {
		for _, n := range answers[i].Nodes {
			var reasons []string
			for _, r := range n.Reasons {
				reasons = append(reasons, string(r))
			}
			t.rows = append(t.rows, []cell{
				text(answers[i].Question), text(n.Node), text(n.Model), text(string(n.Source)), number(n.Allocatable), number(n.Free),
				zero(n.Copies), text(n.Message), text(strings.Join(reasons, " ")),
			})
		}
	}
	return t
}
