package api

import (
	"slices"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Selection says which rows are wanted. The zero value wants all.
type Selection struct {
	Node, Resource, Model string
	// State is one of States, "" for any.
	State string
	// Contains is a part of the node's name.
	Contains string
}

// States are what can be asked of a row: the states of its node, and what follows from
// its numbers.
var States = []string{
	string(count.NotReady), string(count.SchedulingDisabled), string(count.Tainted), "Usable", "Free", "Full", "Overcommitted",
}

// SelectionParameters are the names that ReadSelection reads.
var SelectionParameters = []string{"node", "resource", "model", "state", "contains"}

// ReadSelection reads a selection from a query.
func ReadSelection(p *Parameters) Selection {
	return Selection{
		Node: p.Text("node"), Resource: p.Text("resource"), Model: p.Text("model"),
		State: p.Word("state", States...), Contains: p.Text("contains"),
	}
}

// Rows are those of the snapshot that are wanted, in its order.
func (s Selection) Rows(snap *count.Snapshot) []count.Row {
	if s == (Selection{}) {
		return snap.Rows
	}
	var rows []count.Row
	for i := range snap.Rows {
		if s.wants(&snap.Rows[i]) {
			rows = append(rows, snap.Rows[i])
		}
	}
	return rows
}

func (s Selection) wants(row *count.Row) bool {
	return (s.Node == "" || row.Node == s.Node) &&
		(s.Resource == "" || row.Resource == s.Resource) &&
		(s.Model == "" || row.Model == s.Model) &&
		(s.Contains == "" || strings.Contains(row.Node, s.Contains)) &&
		(s.State == "" || is(row, s.State))
}

func is(row *count.Row, state string) bool {
	switch state {
	case "Usable":
		return len(row.States) == 0
	case "Free":
		return row.UsableFree > 0
	case "Full":
		return row.Free == 0
	case "Overcommitted":
		return row.Overcommitted > 0
	}
	return slices.Contains(row.States, count.State(state))
}
