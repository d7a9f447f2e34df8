package plugin

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// total is what rows come to. Resources are never added up (N5).
type total struct {
	Resource string `json:"resource"`
	Nodes    int    `json:"nodes"`
	count.Numbers
	// What is in no row, and so is absent when only some rows are shown.
	Orphaned *int64        `json:"orphaned,omitempty"`
	Pending  *pendingTally `json:"pending,omitempty"`

	reasons []count.Reason
}

type pendingTally struct {
	Devices int64 `json:"devices"`
	Pods    int   `json:"pods"`
}

// totals are those of the snapshot, or what the rows come to that are shown.
func (r *reading) totals(rows []count.Row, filtered bool) []total {
	out := []total{}
	if filtered {
		return append(out, sum(rows)...)
	}
	for i := range r.snapshot.Summaries {
		s := &r.snapshot.Summaries[i]
		out = append(out, total{
			Resource: s.Resource, Nodes: s.Nodes, Numbers: s.Numbers, Orphaned: &s.Orphaned,
			Pending: &pendingTally{s.Pending.Devices, s.Pending.Pods}, reasons: s.Pending.Reasons,
		})
	}
	return out
}

// sum adds up rows, which are sorted by what they are sorted by.
func sum(rows []count.Row) (out []total) {
	sums := make(map[string]*total)
	nodes := make(map[[2]string]bool)
	for i := range rows {
		row := &rows[i]
		s := sums[row.Resource]
		if s == nil {
			s = &total{Resource: row.Resource}
			sums[row.Resource] = s
		}
		if at := [2]string{row.Resource, row.Node}; !nodes[at] {
			nodes[at] = true
			s.Nodes++
		}
		for _, n := range []struct {
			to  *int64
			add int64
		}{
			{&s.Capacity, row.Capacity}, {&s.Allocatable, row.Allocatable}, {&s.Requested, row.Requested},
			{&s.Free, row.Free}, {&s.UsableFree, row.UsableFree}, {&s.Overcommitted, row.Overcommitted},
		} {
			*n.to = plus(*n.to, n.add)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, *sums[resource])
	}
	return out
}

// plus adds numbers that are not negative, without wrapping (R11).
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// sentences say what the numbers alone do not.
func (t *total) sentences(several bool) []string {
	prefix := ""
	if several {
		prefix = t.Resource + ": "
	}
	var out []string
	say := func(format string, args ...any) { out = append(out, prefix+fmt.Sprintf(format, args...)) }
	if hidden := t.Free - t.UsableFree; hidden > 0 {
		say("%d of %d free cannot be had: they are on nodes that take no pods", hidden, t.Free)
	}
	if t.Overcommitted > 0 {
		say("%d requested beyond what is allocatable: devices, or their plugin, went away under running pods", t.Overcommitted)
	}
	if t.Orphaned != nil && *t.Orphaned > 0 {
		say("%d requested by pods whose node does not exist; in no other number", *t.Orphaned)
	}
	if t.Pending != nil && t.Pending.Pods > 0 {
		say("%s", waiting(t.Pending.Pods, t.Pending.Devices, t.reasons))
	}
	return out
}

// waiting says how many pods wait for how much, and why.
func waiting(pods int, devices int64, reasons []count.Reason) string {
	var why []string
	for _, r := range reasons {
		why = append(why, fmt.Sprintf("%d %s", r.Devices, r.Wait))
	}
	return fmt.Sprintf("%s for %d: %s", waitVerb(pods), devices, strings.Join(why, ", "))
}

func waitVerb(pods int) string {
	if pods == 1 {
		return "1 pod waits"
	}
	return fmt.Sprintf("%d pods wait", pods)
}
