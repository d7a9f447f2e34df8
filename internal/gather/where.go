package gather

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// where is a place in a dump.
type where struct {
	document int
	item     int        // from 1; 0 is the document as a whole
	list     *where     // the list it is an item of, if that is itself a part of a document
	line     func() int // the first of it
}

func (w *where) String() string {
	return fmt.Sprintf("document %d%s (line %d)", w.document, w.items(), w.line())
}

func (w *where) items() (text string) {
	if w.list != nil {
		text = w.list.items()
	}
	if w.item > 0 {
		text += fmt.Sprintf(", item %d", w.item)
	}
	return text
}

func (w *where) depth() (depth int) {
	for ; w.list != nil; w = w.list {
		depth++
	}
	return depth
}

func line(n int) func() int { return func() int { return n } }

// placed is an error with the place where it is. It has the text at once: what is read
// moves on.
type placed struct {
	at  string
	err error
}

func place(w *where, err error) *placed { return &placed{w.String(), err} }

func (p *placed) Error() string { return p.at + ": " + p.err.Error() }
func (p *placed) Unwrap() error { return p.err }

var lineNumber = regexp.MustCompile(`\bline (\d+)`)

// shiftLines makes line numbers of a part, in the text of an error of the YAML parser,
// those of the dump. What the parser does not find it says to be missing one line early.
func shiftLines(err error, shift func(line int) int) error {
	early := 0
	if strings.Contains(err.Error(), "did not find expected") {
		early = 1
	}
	return errors.New(lineNumber.ReplaceAllStringFunc(err.Error(), func(s string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(s, "line "))
		if err != nil {
			return s
		}
		return "line " + strconv.Itoa(shift(n+early))
	}))
}
