package watch

import (
	"bytes"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// evidence finds out whether any of some texts of the form domain/rest occurs in
// the bytes of an object, in whatever field behind its metadata, encoded in whatever
// way that leaves text as it is. It may find one where none counts, in the arguments
// of a container; it must never miss one.
//
// An object is read once, from slash to slash: resource names have one, and most
// objects have a few dozen.
type evidence struct {
	// last has the last byte of every domain.
	last [256]bool
	// texts are what to look for, taken apart at the slash.
	texts []struct{ domain, rest []byte }
}

func newEvidence(texts []string) *evidence {
	e := &evidence{}
	for _, text := range texts {
		domain, rest, _ := strings.Cut(text, "/")
		e.last[domain[len(domain)-1]] = true
		e.texts = append(e.texts, struct{ domain, rest []byte }{[]byte(domain), []byte(rest)})
	}
	return e
}

// inObject looks at everything but metadata, which is half of most objects.
func (e *evidence) inObject(message []byte) (found bool, err error) {
	err = each(message, func(number protowire.Number, value []byte) error {
		found = found || number != 1 && e.in(value)
		return nil
	})
	return found, err
}

func (e *evidence) in(raw []byte) bool {
	for i := 0; ; i++ {
		next := bytes.IndexByte(raw[i:], '/')
		if next < 0 {
			return false
		}
		if i += next; i > 0 && e.last[raw[i-1]] && e.around(raw, i) {
			return true
		}
	}
}

// around reports whether one of the texts has its slash at raw[i].
func (e *evidence) around(raw []byte, i int) bool {
	for _, t := range e.texts {
		// Where the domain would begin is nearly always something else.
		if at := i - len(t.domain); at >= 0 && raw[at] == t.domain[0] &&
			bytes.Equal(raw[at:i], t.domain) && bytes.HasPrefix(raw[i+1:], t.rest) {
			return true
		}
	}
	return false
}
