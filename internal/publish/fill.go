package publish

import "strings"

// fill adds pieces to the data of want. If have says all of it already, have is
// taken: nothing is made that is thrown away at once, and equal needs no second
// look.
func (t *table) fill(want *content, have map[string]string, part []piece) {
	if want.same = t.says(have, want.data, part); want.same {
		want.data = have
		return
	}
	if want.data == nil {
		want.data = make(map[string]string, len(part))
	}
	if t.key != "" {
		want.data[t.key] = t.document(part)
		return
	}
	for i := range part {
		want.data[part[i].node] = string(t.of(&part[i]))
	}
}

// says reports whether data consists of a head and pieces and of nothing else.
func (t *table) says(data, head map[string]string, part []piece) bool {
	for key, value := range head {
		if v, ok := data[key]; !ok || v != value {
			return false
		}
	}
	if t.key != "" {
		document, ok := data[t.key]
		return ok && len(data) == len(head)+1 && t.is(document, part)
	}
	for i := range part {
		if v, ok := data[part[i].node]; !ok || v != string(t.of(&part[i])) {
			return false
		}
	}
	return data != nil && len(data) == len(head)+len(part)
}

// document joins pieces. Each ends in a comma, and the last of them is one too
// many.
func (t *table) document(part []piece) string {
	var b strings.Builder
	b.WriteString(documentHead)
	for i := range part {
		text := t.of(&part[i])
		if i == len(part)-1 {
			text = text[:len(text)-1]
		}
		b.Write(text)
	}
	b.WriteString(documentTail)
	return b.String()
}

// is reports whether a document is what document would give, without making it.
func (t *table) is(document string, part []piece) bool {
	rest, ok := strings.CutPrefix(document, documentHead)
	for i := range part {
		text := t.of(&part[i])
		if i == len(part)-1 {
			text = text[:len(text)-1]
		}
		if !ok || len(rest) < len(text) || rest[:len(text)] != string(text) {
			return false
		}
		rest = rest[len(text):]
	}
	return ok && rest == documentTail
}
