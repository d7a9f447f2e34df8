package publish

import (
	"fmt"
	"slices"
	"strings"
)

// Result is what a publish wrote, in that order.
type Result struct{ Writes []Write }

// Write is what was done to one object and why.
type Write struct {
	Name   string
	Action Action
	Reason Reason
	// Changes lists what differed, "node-1 2→4", sorted, each once.
	Changes []string
}

// Action is what was done.
type Action string

// The actions.
const (
	Created Action = "created"
	Updated Action = "updated"
	Deleted Action = "deleted"
)

// Reason says why.
type Reason string

// The reasons.
const (
	Missing  Reason = "there was none"
	Outdated Reason = "it was left by an earlier run"
	Changed  Reason = "counts changed"
	Vanished Reason = "somebody deleted it"
	Edited   Reason = "somebody edited it"
	Unneeded Reason = "it is not needed any more"
)

// Wrote reports whether anything was written.
func (r Result) Wrote() bool { return len(r.Writes) > 0 }

// Reasons lists each reason once, in the order of the writes.
func (r Result) Reasons() []Reason {
	var reasons []Reason
	for _, w := range r.Writes {
		if !slices.Contains(reasons, w.Reason) {
			reasons = append(reasons, w.Reason)
		}
	}
	return reasons
}

// maxChanges and maxWrites bound the line that is logged for a publish.
const (
	maxChanges = 8
	maxWrites  = 4
)

// String names the first few writes, the first few changes of each, and counts the
// rest.
func (r Result) String() string {
	var parts []string
	for _, w := range r.Writes[:min(len(r.Writes), maxWrites)] {
		parts = append(parts, w.String())
	}
	if more := len(r.Writes) - maxWrites; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more objects", more))
	}
	return strings.Join(parts, "; ")
}

func (w Write) String() string {
	text := w.Name + " " + string(w.Action)
	if len(w.Changes) == 0 {
		return text
	}
	text += ": " + strings.Join(w.Changes[:min(len(w.Changes), maxChanges)], ", ")
	if more := len(w.Changes) - maxChanges; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
