package gather

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// yamlReader reads a YAML document. A parser wants all of it at once, so the items of a
// list are told apart by their indentation, as YAML itself does it, and parsed one by
// one. A document that is laid out in another way is parsed as a whole.
type yamlReader struct {
	*file
	list   itemList
	at     where
	state  yamlState
	begun  bool // something has been there but comments
	indent int  // of the dash before each item, -1 before the first

	head, tail lines // what is in front of the items and behind them
	key        lines // "items:", as long as it is not known whether items are laid out as they should
	item       lines
}

type yamlState int

const (
	beforeItems yamlState = iota
	inItems
	behindItems
	whole // there are no items, or they are not where they can be told apart
)

// lines are a part of a dump that begins at one of its lines.
type lines struct {
	bytes []byte
	line  int
}

func (t *lines) add(line []byte, number int) {
	if len(t.bytes) == 0 {
		t.line = number
	}
	t.bytes = append(t.bytes, line...)
}

var itemsKey = regexp.MustCompile(`^items:[ \t]*(#.*)?\r?\n?$`)

// yamlDocument reads up to the next separator.
func (f *file) yamlDocument() error {
	f.document++
	y := &yamlReader{file: f, at: where{document: f.document, line: line(f.src.line + 1)}, indent: -1}
	f.src.budget = maxObject
	for buf := []byte(nil); ; {
		number := f.src.line + 1
		var err error
		buf, err = f.src.readLine(buf[:0])
		switch {
		case errors.Is(err, io.EOF):
			return y.end()
		case err != nil:
			return y.broke(err)
		case isEnd(buf, "---") || isEnd(buf, "..."):
			f.src.giveBack(buf)
			return y.end()
		}
		if err := y.take(buf, number); err != nil {
			return place(&y.at, err)
		}
	}
}

// broke says where the reading has ended.
func (y *yamlReader) broke(err error) error {
	at := y.at
	if y.state == inItems && y.indent >= 0 {
		at.item++
		at.line = line(y.item.line)
	} else if errors.Is(err, errTooLarge) {
		err = fmt.Errorf("%w (a list in YAML can be larger if it is laid out as kubectl does it; JSON can in any case)", err)
	}
	return place(&at, err)
}

// take puts a line where it belongs.
func (y *yamlReader) take(line []byte, number int) error {
	content := bytes.TrimLeft(line, " ")
	if len(bytes.TrimSpace(content)) == 0 || content[0] == '#' {
		y.add(line, number)
		return nil
	}
	indent := len(line) - len(content)
	dash := isEnd(content, "-")
	switch {
	case y.state == beforeItems && itemsKey.Match(line):
		y.state = inItems
		y.key.add(line, number)
		return nil
	case y.state == beforeItems && !y.begun && dash: // a list without anything around it
		y.state = inItems
	case y.state == inItems && y.indent < 0 && !dash: // items in another layout, or none
		y.state = whole
		y.head.bytes = append(y.head.bytes, y.key.bytes...)
	}
	y.begun = true
	if y.state == inItems {
		switch {
		case dash && (y.indent < 0 || indent == y.indent):
			if err := y.flush(); err != nil {
				return err
			}
			y.indent = indent
			content[0] = ' '
		case indent <= y.indent:
			if err := y.flush(); err != nil {
				return err
			}
			y.state = behindItems
		}
	}
	y.add(line, number)
	return nil
}

func (y *yamlReader) add(line []byte, number int) {
	switch {
	case y.state == behindItems:
		y.tail.add(line, number)
	case y.state == inItems && y.indent < 0:
		y.key.add(line, number)
	case y.state == inItems:
		y.item.add(line, number)
	default:
		y.head.add(line, number)
	}
}

// flush tells the item that has come to its end.
func (y *yamlReader) flush() error {
	if y.state != inItems || y.indent < 0 {
		return nil
	}
	y.src.budget = maxObject
	y.at.item++
	at := y.at
	at.line = line(y.item.line)
	raw, err := yaml.YAMLToJSON(y.item.bytes)
	if err != nil {
		y.broken(&at, "", shiftLines(err, func(n int) int { return y.item.line + n - 1 }))
	} else if err := y.file.item(&y.list, &at, raw); err != nil {
		return err
	}
	y.item.bytes = y.item.bytes[:0]
	return nil
}

// end tells the rest: of a list what it is a list of, else an object.
func (y *yamlReader) end() error {
	if err := y.flush(); err != nil {
		return place(&y.at, err)
	}
	y.at.item = 0
	if y.state == inItems && y.indent < 0 {
		y.state = whole
		y.head.bytes = append(y.head.bytes, y.key.bytes...)
	}
	inHead := bytes.Count(y.head.bytes, newline)
	raw, err := yaml.YAMLToJSON(append(y.head.bytes, y.tail.bytes...))
	if err != nil {
		y.broken(&y.at, "", shiftLines(err, func(n int) int {
			if n > inHead && y.state == behindItems {
				return y.tail.line + n - 1 - inHead
			}
			return y.head.line + n - 1
		}))
	}
	if y.state == inItems || y.state == behindItems {
		_ = kubejson.Unmarshal(raw, &y.list.is) // what is no kind is as good as none
		y.file.end(&y.list)
	} else if err == nil {
		y.wholeDocument(raw)
	}
	return nil
}

// wholeDocument tells a document that has been parsed as a whole.
func (y *yamlReader) wholeDocument(raw []byte) {
	switch {
	case string(raw) == "null":
	case raw[0] == '[':
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items) // it has just been marshaled
		y.innerItems(&y.at, items, metav1.TypeMeta{})
	default:
		if err := y.object(&y.at, raw, metav1.TypeMeta{}); err != nil {
			y.broken(&y.at, "", err)
		}
	}
}
