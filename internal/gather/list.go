package gather

import (
	"bytes"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// itemList is a list whose items are told one by one. What it is a list of may stand
// behind them.
type itemList struct {
	is   metav1.TypeMeta
	held []heldItem
	size int
}

// heldItem is an item that does not say what it is, and of which the list has not
// said so yet.
type heldItem struct {
	at  where
	raw []byte
}

// heldOverhead is what is kept of an item besides its text.
const heldOverhead = 128

// item tells an item.
func (f *file) item(l *itemList, w *where, raw []byte) error {
	if err := f.object(w, raw, l.is); err == nil {
		return nil
	}
	at := *w
	at.line = line(w.line())
	l.held, l.size = append(l.held, heldItem{at, bytes.Clone(raw)}), l.size+len(raw)+heldOverhead
	if l.size > maxObject {
		return errors.New("too many items without a kind before their list says what it is: put its kind in front")
	}
	return nil
}

// end tells what was held, now that all of the list is known.
func (f *file) end(l *itemList) {
	f.sawList(l.is)
	for i := range l.held {
		h := &l.held[i]
		if f.object(&h.at, h.raw, l.is) != nil {
			f.broken(&h.at, "", errors.New("has no kind, nor has the list it is in"))
		}
	}
}
