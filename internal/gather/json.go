package gather

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jsonReader reads JSON documents, one after the other.
type jsonReader struct {
	*file
	dec *json.Decoder
	at  where // what is read
}

// jsonDocuments reads until something else than JSON follows. One decoder does for
// all, so that a file of lines costs no more than a list.
func (f *file) jsonDocuments() error {
	j := &jsonReader{file: f, dec: json.NewDecoder(f.src)}
	for {
		f.document++
		j.at = where{document: f.document}
		f.src.budget = maxObject
		if err := j.value(); err != nil {
			return j.broke(err)
		}
		f.src.budget = maxObject
		if !j.dec.More() || !isJSON(j.ahead(2)) {
			f.src.giveBack(j.ahead(2 * maxObject))
			return nil
		}
	}
}

// ahead is what the decoder has read and not used, n bytes of it at most.
func (j *jsonReader) ahead(n int) []byte {
	text, _ := io.ReadAll(io.LimitReader(j.dec.Buffered(), int64(n))) // from memory
	return text
}

// line is where the decoder is. The source is where it has read to.
func (j *jsonReader) line() int {
	var ahead lineCounter
	_, _ = io.Copy(&ahead, j.dec.Buffered()) // from memory
	return j.src.line - int(ahead) + 1
}

type lineCounter int

func (c *lineCounter) Write(p []byte) (int, error) {
	*c += lineCounter(bytes.Count(p, newline))
	return len(p), nil
}

// broke says where the text is broken.
func (j *jsonReader) broke(err error) error {
	at := j.line()
	switch {
	case errors.As(err, new(*json.SyntaxError)):
		at += j.linesTo(err)
		err = fmt.Errorf("%w: this is no JSON, and where the next object begins is not known", err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		at = j.src.line + 1
		err = errors.New("ends in the middle of an object: the dump is not complete, make it anew")
	}
	j.at.line = line(at)
	return place(&j.at, err)
}

// linesTo is how many lines behind where the decoder is the text is broken. The offset in
// the error is no help, for the decoder counts some bytes and others not; one that
// begins there counts all.
func (j *jsonReader) linesTo(err error) int {
	ahead := j.ahead(2 * maxObject)
	var again *json.SyntaxError
	if errors.As(json.NewDecoder(bytes.NewReader(ahead)).Decode(new(json.RawMessage)), &again) && again.Error() == err.Error() {
		return bytes.Count(ahead[:min(int(again.Offset), len(ahead))], newline)
	}
	return 0
}

// value reads a document: an object, a list, or several of them in brackets.
func (j *jsonReader) value() error {
	token, err := j.dec.Token()
	if err != nil {
		return err
	}
	j.at.line = line(j.line())
	var l itemList
	if token == json.Delim('[') {
		if err := j.items(&l); err != nil {
			return err
		}
		j.end(&l)
		return nil
	}
	fields, isList, err := j.fields(&l)
	if err != nil {
		return err
	}
	if isList {
		j.end(&l)
	} else if err := j.object(&j.at, fields, metav1.TypeMeta{}); err != nil {
		j.broken(&j.at, "", err)
	}
	return nil
}

// fields reads an object of which nobody knows yet whether it is a list. Items are
// told at once, everything else is put together again.
func (j *jsonReader) fields(l *itemList) (fields []byte, isList bool, err error) {
	fields = []byte{'{'}
	for j.dec.More() {
		key, err := j.dec.Token()
		if err != nil {
			return nil, false, err
		}
		var value json.RawMessage
		if key == "items" && (l.is.Kind == "" || strings.HasSuffix(l.is.Kind, listSuffix)) {
			isList = true
			if err := j.list(l); err != nil {
				return nil, false, err
			}
			continue
		}
		if err := j.dec.Decode(&value); err != nil {
			return nil, false, err
		}
		switch key {
		case "kind":
			_ = json.Unmarshal(value, &l.is.Kind) // no text is as good as none
		case "apiVersion":
			_ = json.Unmarshal(value, &l.is.APIVersion)
		}
		quoted, _ := json.Marshal(key) // a string cannot fail
		if len(fields) > 1 {
			fields = append(fields, ',')
		}
		fields = append(append(append(fields, quoted...), ':'), value...)
	}
	_, err = j.dec.Token()
	return append(fields, '}'), isList, err
}

// list reads the value of "items".
func (j *jsonReader) list(l *itemList) error {
	token, err := j.dec.Token()
	switch {
	case err != nil:
		return err
	case token == json.Delim('['):
		return j.items(l)
	case token != nil:
		return errors.New("items is no list")
	}
	return nil
}

// items reads up to the closing bracket.
func (j *jsonReader) items(l *itemList) error {
	document := j.at
	taker := jsonItem{take: func(raw []byte) error {
		j.at.line = func() int { return j.line() - bytes.Count(raw, newline) }
		return j.item(l, &j.at, raw)
	}}
	for j.dec.More() {
		j.src.budget = maxObject
		j.at.item++
		if err := j.dec.Decode(&taker); err != nil {
			return err
		}
	}
	if _, err := j.dec.Token(); err != nil {
		return err
	}
	j.at = document
	return nil
}

// jsonItem hands on a value as it lies in the decoder's buffer.
type jsonItem struct{ take func([]byte) error }

func (i *jsonItem) UnmarshalJSON(raw []byte) error { return i.take(raw) }
