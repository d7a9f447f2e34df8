package plugin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// numberCells are capacity to overcommitted. What is free and cannot be had is
// yellow, and what should not be is red. Where nodes are not known, all but requested
// mean nothing.
func (r *reading) numberCells(n *count.Numbers) []cell {
	if !r.snapshot.NodesKnown {
		return []cell{unknown, unknown, zero(n.Requested), unknown, unknown, unknown}
	}
	free, usable := zero(n.Free), zero(n.UsableFree)
	switch {
	case n.UsableFree > 0:
		usable.colour = green
	case n.Free > 0:
		free.colour, usable.colour = yellow, yellow
	}
	requested, over := zero(n.Requested), zero(n.Overcommitted)
	if n.Overcommitted > 0 {
		requested.colour, over.colour = red, red
	}
	return []cell{number(n.Capacity), number(n.Allocatable), requested, free, usable, over}
}

// ready is what is shown of a node that takes pods; in the fields it has no states.
const ready = "Ready"

func stateText(states []count.State) string {
	if len(states) == 0 {
		return ready
	}
	return joined(states)
}

func joined(states []count.State) string {
	names := make([]string, 0, len(states))
	for _, state := range states {
		names = append(names, string(state))
	}
	return strings.Join(names, ",")
}

// unknown is shown for what nobody knows.
var unknown = text("").inTables("?").in(faint)

func (r *reading) stateCell(states []count.State) cell {
	if !r.snapshot.NodesKnown {
		return unknown
	}
	c := text(joined(states)).inTables(stateText(states))
	switch {
	case slices.Contains(states, count.NotReady):
		c.colour = red
	case len(states) > 0:
		c.colour = yellow
	}
	return c
}

const barWidth = 10

func (r *reading) bar(n *count.Numbers) cell {
	if !r.snapshot.NodesKnown {
		return text("")
	}
	return bar(n)
}

// bar draws how much of what is allocatable is requested. What is in use shows at
// least one block, and so does what is free.
func bar(n *count.Numbers) cell {
	blocks := 0
	switch {
	case n.Requested <= 0:
	case n.Requested >= n.Allocatable:
		blocks = barWidth
	default:
		share := float64(n.Requested) / float64(n.Allocatable)
		blocks = min(barWidth-1, max(1, int(share*barWidth+0.5)))
	}
	c := cell{draw: func(s screen) string {
		full, empty := "#", "."
		if s.unicode {
			full, empty = "█", "░"
		}
		return strings.Repeat(full, blocks) + strings.Repeat(empty, barWidth-blocks)
	}}
	if n.Overcommitted > 0 {
		c.colour = red
	}
	return c
}

// age is how long ago something was, as kubectl has it.
func (c *common) age(since time.Time) cell {
	if since.IsZero() {
		return text("<unknown>")
	}
	return text(duration.HumanDuration(c.now().Sub(since)))
}

// stamp is a time in JSON and CSV, nil when it is not known.
func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func stampCell(t *time.Time) cell {
	if t == nil {
		return text("")
	}
	return text(t.Format(time.RFC3339))
}

// some is a number that JSON leaves out when it is 0.
func some(n int64) cell {
	if n == 0 {
		return text("")
	}
	return number(n)
}

// orNone is text in tables too when there is none.
func orNone(s string) cell {
	if s == "" {
		return cell{draw: func(screen) string { return "<none>" }, colour: faint}
	}
	return text(s)
}

// inTables is shown as something else there than in CSV.
func (c cell) inTables(s string) cell {
	c.draw = func(screen) string { return clean(s) }
	return c
}

func plural[N int | int64](n N, word string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, word)
	}
	return fmt.Sprintf("%d %ss", n, word)
}
