package publish

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// SchemaVersion is in every document. Within a version fields are added at most:
// none is removed, renamed or given another meaning. docs/configmaps.md has the
// promise and docs/schema the schemas.
const SchemaVersion = "1"

// Keys of the ConfigMap with everything there is to know.
const (
	KeySummary = "summary.json"
	KeyNodes   = "nodes.json"
)

func capacitySet(name string) set {
	return set{
		name: name,
		key:  KeyNodes,
		head: func(snap *count.Snapshot) content {
			return content{data: map[string]string{KeySummary: summaryDocument(snap)}, annotations: map[string]string{}}
		},
		rows: func(snap *count.Snapshot, t *table) {
			for i := 0; i < len(snap.Rows); {
				first := i
				for i < len(snap.Rows) && snap.Rows[i].Node == snap.Rows[first].Node {
					i++
				}
				rows := snap.Rows[first:i]
				t.add(rows[0].Node, func(b []byte) []byte {
					for j := range rows {
						b = append(appendRow(b, &rows[j]), ',')
					}
					return b
				})
			}
		},
	}
}

// summaryDocument is everything about the cluster that is not about one node.
// Versions are left out: they change with every event, and equal counts must give
// equal bytes.
func summaryDocument(snap *count.Snapshot) string {
	document := struct {
		SchemaVersion string `json:"schemaVersion"`
		count.Snapshot
		Observed *struct{} `json:"observed,omitempty"` // hides that of the snapshot
	}{SchemaVersion: SchemaVersion, Snapshot: *snap}
	document.Rows = nil                                                    // not in the document, so not worth a copy
	text, _ := json.Marshal(filled(reflect.ValueOf(document)).Interface()) // numbers and strings cannot fail
	return string(text)
}

// filled is a copy of a value without nil slices. They would become null, which a
// reader has to tell from [] though it means the same.
func filled(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Struct:
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		for i := range c.NumField() {
			if f := c.Field(i); f.CanSet() {
				f.Set(filled(f))
			}
		}
		return c
	case reflect.Slice:
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(filled(v.Index(i)))
		}
		return c
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(filled(v.Elem()))
		return c
	}
	return v
}

const (
	documentHead = `{"schemaVersion":"` + SchemaVersion + `","rows":[`
	documentTail = `]}`
)

// appendRow renders a row as encoding/json would, in an eighth of the time: a
// cluster has many of them, and all are rendered in every pass. A test compares
// the two for rows with every field set.
func appendRow(b []byte, r *count.Row) []byte {
	b = appendString(append(b, `{"node":`...), r.Node)
	b = appendString(append(b, `,"resource":`...), r.Resource)
	b = appendString(append(b, `,"source":`...), string(r.Source))
	b = appendString(append(b, `,"model":`...), r.Model)
	if r.Replicas != 0 {
		b = appendNumber(b, `,"replicas":`, r.Replicas)
	}
	if len(r.States) > 0 {
		b = append(b, `,"states":`...)
		for i, state := range r.States {
			b = append(b, "[,"[min(i, 1)])
			b = appendString(b, string(state))
		}
		b = append(b, ']')
	}
	b = appendNumber(b, `,"capacity":`, r.Capacity)
	b = appendNumber(b, `,"allocatable":`, r.Allocatable)
	b = appendNumber(b, `,"requested":`, r.Requested)
	b = appendNumber(b, `,"free":`, r.Free)
	b = appendNumber(b, `,"usableFree":`, r.UsableFree)
	b = appendNumber(b, `,"overcommitted":`, r.Overcommitted)
	if r.Claimed != 0 {
		b = appendNumber(b, `,"claimed":`, r.Claimed)
	}
	if r.Blocked != 0 {
		b = appendNumber(b, `,"blocked":`, r.Blocked)
	}
	return append(b, '}')
}

func appendNumber(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(b, key...), n, 10)
}

// plain are the characters that encoding/json leaves as they are.
var plain = func() (plain [256]bool) {
	for c := ' '; c <= '~'; c++ {
		plain[c] = !strings.ContainsRune(`"\<>&`, c)
	}
	return plain
}()

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if !plain[s[i]] {
			quoted, _ := json.Marshal(s) // strings cannot fail
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
