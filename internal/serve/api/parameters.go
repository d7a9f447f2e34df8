package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Parameters are those of a query. The first mistake in them is kept, so that a
// handler can read all it needs and look at Err once.
type Parameters struct {
	values url.Values
	err    error
}

// Read reads a query. A parameter that is not one of those allowed is a mistake: one
// that was misspelt would else be an answer to another question.
func Read(r *http.Request, allowed ...string) *Parameters {
	p := &Parameters{}
	p.values, p.err = url.ParseQuery(r.URL.RawQuery)
	if p.err != nil {
		p.err = fmt.Errorf("the query cannot be read: %w", p.err)
	}
	var names []string
	for name := range p.values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case !slices.Contains(allowed, name) && len(allowed) == 0:
			p.fail("there is no parameter %q here; there are none", name)
		case !slices.Contains(allowed, name):
			p.fail("there is no parameter %q here; there are %s", name, strings.Join(allowed, ", "))
		case len(p.values[name]) > 1:
			p.fail("parameter %q is given %d times; once is possible", name, len(p.values[name]))
		}
	}
	return p
}

// Err is the first mistake.
func (p *Parameters) Err() error { return p.err }

func (p *Parameters) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// Text is a parameter as it stands, "" if it does not.
func (p *Parameters) Text(name string) string { return p.values.Get(name) }

// Number is a parameter that is a number from least to most, or otherwise if there is
// none.
func (p *Parameters) Number(name string, otherwise, least, most int64) int64 {
	text := p.values.Get(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || strings.HasPrefix(text, "+") {
		p.fail("parameter %q is %q; want a number", name, text)
		return otherwise
	}
	if n < least || n > most {
		p.fail("parameter %q is %s; want a number from %d to %d", name, text, least, most)
		return otherwise
	}
	return n
}

// Word is a parameter that is one of some words, or empty.
func (p *Parameters) Word(name string, words ...string) string {
	text := p.values.Get(name)
	if text != "" && !slices.Contains(words, text) {
		p.fail("parameter %q is %q; want one of %s", name, text, strings.Join(words, ", "))
		return ""
	}
	return text
}

// Flag is a parameter that is true or false.
func (p *Parameters) Flag(name string) bool { return p.Word(name, "true", "false") == "true" }
