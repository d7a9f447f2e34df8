package load

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// maxProblems bounds what is printed about a broken file: a file in the wrong
// format is wrong on every line, and the first few lines say all there is to say.
const maxProblems = 20

// maxFigure bounds every number of a table. A count beyond it is a typing error,
// and below it a memory size in bytes and a sum over all rows stay inside int64.
const maxFigure = 1 << 40

// problems collects what is wrong with the tables, so that one run shows it all.
type problems struct {
	errs []error
	more int
}

func (p *problems) add(file string, line int, column, what string) {
	if len(p.errs) == maxProblems {
		p.more++
		return
	}
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %s: %s", file, line, column, what))
}

func (p *problems) err() error {
	if p.more > 0 {
		return errors.Join(append(p.errs, fmt.Errorf("and %d more", p.more))...)
	}
	return errors.Join(p.errs...)
}

// table is a CSV file whose first line names the columns.
type table struct {
	file string
	bad  *problems
	// index is where each column stands: a file may order its columns as it
	// likes and have more of them.
	index map[string]int
}

// row is one line of a table. The first thing wrong with it makes ok false.
type row struct {
	*table
	line   int
	fields []string
	ok     bool
}

// readTable calls each for every row of the file that has all its columns. What
// is wrong goes to bad; the error is for a file that cannot be read at all.
func readTable(file string, columns []string, bad *problems, each func(*row)) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	// Spreadsheets put a byte order mark in front; it would become a part of
	// the first column's name.
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	r.FieldsPerRecord = -1
	t := &table{file: file, bad: bad}
	if !t.header(r, columns) {
		return nil
	}
	for rows := 0; ; rows++ {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			if rows == 0 {
				bad.add(file, 2, "row", "no rows")
			}
			return nil
		}
		if err != nil {
			t.parseProblem(err)
			continue
		}
		line, _ := r.FieldPos(0)
		if len(fields) != len(t.index) {
			bad.add(file, line, "row", fmt.Sprintf("%d columns, the header has %d", len(fields), len(t.index)))
			continue
		}
		each(&row{table: t, line: line, fields: fields, ok: true})
	}
}

// header reads the first line. Without its columns no later line means anything.
func (t *table) header(r *csv.Reader, columns []string) bool {
	names, err := r.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		t.parseProblem(err)
		return false
	}
	t.index = make(map[string]int, len(names))
	for i, name := range names {
		if _, twice := t.index[name]; twice {
			t.bad.add(t.file, 1, "header", fmt.Sprintf("column %s is there twice", name))
			return false
		}
		t.index[name] = i
	}
	missing := slices.DeleteFunc(slices.Clone(columns), func(c string) bool { _, ok := t.index[c]; return ok })
	if len(missing) > 0 {
		t.bad.add(t.file, 1, "header", "no column "+strings.Join(missing, ", "))
	}
	return len(missing) == 0
}

func (t *table) parseProblem(err error) {
	line, what := 1, err.Error()
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		line, what = parse.Line, parse.Err.Error()
	}
	t.bad.add(t.file, line, "row", what)
}

func (r *row) fail(column, format string, args ...any) {
	r.ok = false
	r.bad.add(r.file, r.line, column, fmt.Sprintf(format, args...))
}

func (r *row) text(column string) string { return r.fields[r.index[column]] }

// number is a whole number, zero or more.
func (r *row) number(column string) int64 {
	text := r.text(column)
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "":
		r.fail(column, "empty, want a whole number")
	case errors.Is(err, strconv.ErrRange) || n > maxFigure:
		r.fail(column, "%s is out of range", text)
	case err != nil:
		r.fail(column, "%q is not a whole number", text)
	case n < 0:
		r.fail(column, "%d is negative", n)
	}
	return n
}

// optional is a number that may be left empty.
func (r *row) optional(column string) {
	if r.text(column) != "" {
		r.number(column)
	}
}

// unique reports a name that an earlier line has taken.
func (r *row) unique(column string, seen map[string]int) {
	name := r.text(column)
	if first, twice := seen[name]; twice {
		r.fail(column, "%q is already on line %d", name, first)
		return
	}
	seen[name] = r.line
}
