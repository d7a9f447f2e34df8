package page

import (
	"cmp"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// order is a way to sort rows. Of numbers the largest come first.
type order struct {
	name, label string
	number      bool
	compare     func(a, b *count.Row) int
}

var orders = []order{
	{"node", "Node", false, func(a, b *count.Row) int { return cmp.Compare(a.Node, b.Node) }},
	{"model", "Model", false, func(a, b *count.Row) int { return cmp.Compare(a.Model, b.Model) }},
	{"allocatable", "Allocatable", true, func(a, b *count.Row) int { return cmp.Compare(a.Allocatable, b.Allocatable) }},
	{"requested", "Requested", true, func(a, b *count.Row) int { return cmp.Compare(a.Requested, b.Requested) }},
	{"free", "Free", true, func(a, b *count.Row) int { return cmp.Compare(a.Free, b.Free) }},
	{"usable", "Usable", true, func(a, b *count.Row) int { return cmp.Compare(a.UsableFree, b.UsableFree) }},
	{"over", "Over", true, func(a, b *count.Row) int { return cmp.Compare(a.Overcommitted, b.Overcommitted) }},
}

// sortWords are what can be asked for: the name of an order, with - for the other way
// round.
var sortWords = func() (words []string) {
	for _, o := range orders {
		words = append(words, o.name, "-"+o.name)
	}
	return words
}()

// sortRows keeps the order of the snapshot among equals.
func sortRows(rows []count.Row, by string) {
	name, backwards := strings.CutPrefix(by, "-")
	for _, o := range orders {
		if o.name == name {
			slices.SortStableFunc(rows, func(a, b count.Row) int {
				if backwards {
					return o.compare(&b, &a)
				}
				return o.compare(&a, &b)
			})
		}
	}
}

// column is one that the table can be sorted by.
type column struct {
	Label, Address string
	Number         bool
	// Order is ascending, descending, or "" if the table is not sorted by it.
	Order string
}

// columns lead to the same table sorted by them, and the one it is sorted by already to
// the other way round.
func columns(sorted string, to func(sort string) string) (all []column) {
	for _, o := range orders {
		c := column{Label: o.label, Number: o.number}
		next := o.name
		if o.number {
			next = "-" + next
		}
		switch sorted {
		case o.name:
			c.Order, next = "ascending", "-"+o.name
		case "-" + o.name:
			c.Order, next = "descending", o.name
		}
		c.Address = to(next)
		all = append(all, c)
	}
	return all
}

func (c column) draw() g.Node {
	arrow := map[string]string{"ascending": " ↑", "descending": " ↓"}[c.Order]
	return h.Th(h.Scope("col"), g.If(c.Number, numeric), g.If(c.Order != "", h.Aria("sort", c.Order)), to(c.Address, c.Label+arrow))
}
