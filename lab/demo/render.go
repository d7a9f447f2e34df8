package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/lab/progress"
)

// How many nodes the table shows.
const (
	shownEnds          = 5 // fullest and emptiest
	shownOvercommitted = 10
)

// style is how titles stand out; the zero value is plain.
type style struct{ on, off string }

// styled returns what w can show. (See no-color.org for the variable.)
func styled(w io.Writer) style {
	if !progress.IsTerminal(w) || os.Getenv("NO_COLOR") != "" {
		return style{}
	}
	return style{on: "\x1b[1m", off: "\x1b[0m"}
}

// WriteTable writes the report for people.
func WriteTable(w io.Writer, r Report, s style) error {
	var b strings.Builder
	title := func(format string, args ...any) {
		fmt.Fprintf(&b, "\n%s%s%s\n", s.on, fmt.Sprintf(format, args...), s.off)
	}
	title("GPUs of %d nodes, as published in ConfigMap %s", len(r.Rows), target)
	writeTotals(&b, r)

	fullest := first(shownEnds, r.Rows, fuller, hasPods)
	emptiest := first(shownEnds, r.Rows, emptier, hasRoom)
	over := first(shownOvercommitted, r.Rows, overflow, overcommitted)
	line := lines(fullest, emptiest, over)
	title("Fullest nodes (%d with no GPU free)", len(r.Rows)-countRows(r.Rows, hasRoom))
	writeRows(&b, line, fullest, len(fullest))
	title("Emptiest nodes (%d with no GPU requested)", len(r.Rows)-countRows(r.Rows, hasPods))
	writeRows(&b, line, emptiest, len(emptiest))
	title("Overcommitted nodes")
	writeRows(&b, line, over, countRows(r.Rows, overcommitted))
	_, err := io.WriteString(w, b.String())
	return err
}

func writeTotals(b *strings.Builder, r Report) {
	for _, total := range []struct {
		name  string
		value int64
		note  string
	}{
		{"requested", r.Requested, naiveNote(r)},
		{"allocatable", r.Allocatable, ""},
		{"free", r.Free, ""},
		{"pending", r.Pending, ""},
		{"overcommitted", r.Overcommitted, ""},
	} {
		fmt.Fprintf(b, "  %-13s %8d%s\n", total.name, total.value, total.note)
	}
	fmt.Fprintf(b, "\nThe naive sum is wrong because finished pods keep their spec (%d GPUs here), and\npending ones, though not on a node, have one too (%d).\n",
		r.Naive.Finished, r.Pending)
}

// naiveNote says how far a sum over all pods is off.
func naiveNote(r Report) string {
	note := fmt.Sprintf("     naive sum over all pods: %d", r.Naive.Sum)
	if r.Requested == 0 {
		return note + fmt.Sprintf(" (%+d)", r.Naive.Sum)
	}
	over := r.Naive.Sum - r.Requested
	return note + fmt.Sprintf(" (%+d, %+.0f %%)", over, 100*float64(over)/float64(r.Requested))
}

// lines returns how a line of a table of nodes is formatted, so that all tables
// have the same columns.
func lines(tables ...[]Row) (format string) {
	name, model := len("NODE"), len("MODEL")
	for _, rows := range tables {
		for _, r := range rows {
			name, model = max(name, len(r.Node)), max(model, len(r.Model))
		}
	}
	return fmt.Sprintf("  %%-%dv  %%-%dv  %%11v  %%9v  %%4v\n", name, model)
}

// writeRows writes rows, of a table that should have so many.
func writeRows(b *strings.Builder, line string, rows []Row, of int) {
	if len(rows) == 0 {
		b.WriteString("  none\n")
		return
	}
	fmt.Fprintf(b, line, "NODE", "MODEL", "ALLOCATABLE", "REQUESTED", "FREE")
	for _, r := range rows {
		model := r.Model
		if model == "" {
			model = "-"
		}
		fmt.Fprintf(b, line, r.Node, model, r.Allocatable, r.Requested, r.free())
	}
	if of > len(rows) {
		fmt.Fprintf(b, "  … and %d more\n", of-len(rows))
	}
}

// WriteJSON writes the report for programs.
func WriteJSON(w io.Writer, r Report) error {
	nodes := make(map[string]int64, len(r.Rows))
	for _, row := range r.Rows {
		nodes[row.Node] = row.Requested
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Requested   int64            `json:"requested"`
		Allocatable int64            `json:"allocatable"`
		Free        int64            `json:"free"`
		Pending     int64            `json:"pending"`
		Naive       int64            `json:"naive"`
		Nodes       map[string]int64 `json:"nodes"`
	}{r.Requested, r.Allocatable, r.Free, r.Pending, r.Naive.Sum, nodes})
}

// writeHints says how to look further while the lab runs.
func writeHints(w io.Writer, kubeconfig string, c *controller) error {
	missing := ""
	if _, err := exec.LookPath("kubectl"); err != nil {
		missing = "\n(kubectl is not installed here; the browser and curl do without.)\n"
	}
	_, err := fmt.Fprintf(w, `
To look further, in another terminal:

  export KUBECONFIG=%s
  kubectl get configmap -n %s %s -o yaml
  kubectl get pods -n %s --watch
  go run ./cmd/kubectl-gpu_summary models
  curl %s/metrics
  tail -f %s

and in a browser:

  %s/           the same numbers, and who holds what
  %s/pipeline   the five components at work
%s
Jobs come and go from here on. Ctrl-C stops everything and removes it.

`, kubeconfig, target.Namespace, target.Name, churnNamespace, c.url, c.log, c.url, c.url, missing)
	return err
}
