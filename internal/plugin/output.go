package plugin

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// format is how a view is printed, "" for tables.
type format string

const (
	formatTable format = ""
	formatWide  format = "wide"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
	formatCSV   format = "csv"
	formatName  format = "name"
)

var formats = []string{string(formatWide), string(formatJSON), string(formatYAML), string(formatCSV), string(formatName)}

// Set takes a format that there is.
func (f *format) Set(s string) error {
	if !slices.Contains(formats, s) {
		return fmt.Errorf("want one of %s", strings.Join(formats, ", "))
	}
	*f = format(s)
	return nil
}

func (f *format) String() string { return string(*f) }

// Type is what pflag calls the value in help texts.
func (f *format) Type() string { return "format" }

// format is that of -o, or of --wide.
func (c *common) format() format {
	if c.output == formatTable && c.wide {
		return formatWide
	}
	return c.output
}

// view is the answer of a subcommand, whatever the format.
type view struct {
	tables []table
	// csv is the table that CSV has, the first of tables when it is nil.
	csv *table
	// document is what JSON and YAML have.
	document any
	// names are lines such as node/a.
	names []string
	// notes are about the answer, and no part of it: they go to standard error.
	notes []string
}

// print shows a view once.
func (c *common) print(v *view) error {
	b, err := v.render(c.format(), c.screen())
	if err != nil {
		return err
	}
	if err := c.write(string(b)); err != nil {
		return err
	}
	c.note(v.notes)
	return nil
}

func (c *common) write(s string) error {
	if _, err := io.WriteString(c.Out, s); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

func (c *common) note(notes []string) {
	for _, note := range notes {
		fmt.Fprintf(c.ErrOut, "note: %s\n", clean(note))
	}
}

func (v *view) render(f format, s screen) ([]byte, error) {
	switch f {
	case formatJSON:
		b, err := json.MarshalIndent(v.document, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("make JSON: %w", err)
		}
		return append(escapeJSON(b), '\n'), nil
	case formatYAML:
		return v.asYAML()
	case formatCSV:
		if v.csv != nil {
			return v.csv.asCSV()
		}
		return v.tables[0].asCSV()
	case formatName:
		var b bytes.Buffer
		for _, name := range v.names {
			b.WriteString(clean(name) + "\n")
		}
		return b.Bytes(), nil
	default:
		var b bytes.Buffer
		for _, line := range v.lines(s, f == formatWide) {
			b.WriteString(line + "\n")
		}
		return b.Bytes(), nil
	}
}

// asYAML writes text that could drive a terminal in YAML's other style, which is JSON: it
// has escapes for everything.
func (v *view) asYAML() ([]byte, error) {
	b, err := json.MarshalIndent(v.document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("make YAML: %w", err)
	}
	if escaped := escapeYAML(b); !bytes.Equal(escaped, b) {
		return append(escaped, '\n'), nil
	}
	if b, err = yaml.JSONToYAML(b); err != nil {
		return nil, fmt.Errorf("make YAML: %w", err)
	}
	return b, nil
}

// lines are the tables with an empty line between two.
func (v *view) lines(s screen, isWide bool) (lines []string) {
	for i := range v.tables {
		of := v.tables[i].lines(s, isWide)
		if len(lines) > 0 && len(of) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, of...)
	}
	return lines
}

func (t *table) asCSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	record := func(of func(i int) string) error {
		var fields []string
		for i, c := range t.columns {
			if c.shown != tableOnly && c.shown != terminalOnly {
				fields = append(fields, of(i))
			}
		}
		return w.Write(fields)
	}
	err := record(func(i int) string { return t.columns[i].field })
	for _, row := range t.rows {
		if err == nil {
			err = record(func(i int) string { return row[i].asCSV() })
		}
	}
	w.Flush()
	if err == nil {
		err = w.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("make CSV: %w", err)
	}
	return b.Bytes(), nil
}

// asCSV lets no text begin as a formula does: spreadsheets evaluate what they open,
// and anybody who may label a node could put one there.
func (c cell) asCSV() string {
	s := clean(c.text)
	if !c.number && s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

// orEmpty makes a list that has nothing [] in JSON, never null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
