package preflight

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is a need's verbs that share an answer.
type row struct {
	Need
	status status
	verbs  []string
}

// rows puts verbs of one need together again where the answer is the same.
func (r Report) rows() (rows []row) {
	for _, a := range r.sorted() {
		i := slices.IndexFunc(rows, func(o row) bool {
			return o.status == a.status() && o.For == a.For && o.object() == a.object() && o.Namespace == a.Namespace
		})
		if i < 0 {
			i = len(rows)
			rows = append(rows, row{Need: a.Need, status: a.status()})
		}
		rows[i].verbs = append(rows[i].verbs, a.Verb)
	}
	return rows
}

func (r Report) table(colour bool) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n", r.headline())
	rows := r.rows()
	var table bytes.Buffer
	tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "STATUS\tVERBS\tRESOURCE\tWHERE\tWHAT FOR")
	for _, row := range rows {
		why := row.why()
		if row.status == allowed {
			why = "to " + row.For // what would be without it is no news
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", row.status, strings.Join(row.verbs, ", "), row.object(), row.where(), why)
	}
	_ = tw.Flush() // a buffer takes everything
	// Coloured when the columns are set: an escape sequence has no width.
	for i, line := range strings.SplitAfter(table.String(), "\n") {
		if colour && i > 0 && i <= len(rows) {
			word := rows[i-1].status.String()
			line = rows[i-1].status.colour() + word + "\x1b[0m" + strings.TrimPrefix(line, word)
		}
		b.WriteString(line)
	}
	r.writeNotes(&b)
	if rules := r.rules(); len(rules) > 0 {
		b.WriteString("\nRules to add, which \"-o yaml\" prints with roles and bindings for kubectl apply:\n")
		for _, group := range byNamespace(rules) {
			fmt.Fprintf(&b, "\n# to a %s\n", group.title())
			b.WriteString(group.text())
		}
	}
	return b.Bytes()
}

func (r Report) headline() string {
	required, optional := r.Missing()
	who := cmp.Or(r.User, "this user")
	if r.Server != "" {
		who += " on " + r.Server
	}
	total, lacks := len(r.Answers), required+optional
	switch {
	case lacks == 0:
		return fmt.Sprintf("%s has all %d permissions.", who, total)
	case required == 0:
		return fmt.Sprintf("%s has %d of %d permissions; %d missing, none of them required.", who, total-lacks, total, lacks)
	default:
		return fmt.Sprintf("%s has %d of %d permissions; %d missing, %d of them required.", who, total-lacks, total, lacks, required)
	}
}

// writeNotes adds what the server said beside yes and no, once each.
func (r Report) writeNotes(w io.Writer) {
	var notes []string
	for _, a := range r.sorted() {
		note := a.EvaluationError
		if !a.Allowed && note == "" {
			note = a.Reason
		}
		if note = strings.Join(strings.Fields(note), " "); note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	if len(notes) > 0 {
		fmt.Fprintf(w, "\nThe API server adds:\n  %s\n", strings.Join(notes, "\n  "))
	}
}

func (s status) colour() string {
	return [...]string{"\x1b[31m", "\x1b[33m", "\x1b[32m"}[s]
}

// isTerminal reports whether colours are wanted there; no-color.org is a way to say
// that they are not.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
