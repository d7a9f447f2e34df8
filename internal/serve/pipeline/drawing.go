package pipeline

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

// Box is a component in the drawing.
type Box struct {
	Verdict
	Title   string
	X, Y, W int
	// Lines are the few numbers that say most.
	Lines []string
}

// boxHeight is that of all boxes.
const boxHeight = 118

// drawing places the components as the picture in the README does.
func drawing(n Numbers) []Box {
	verdicts := Judge(n)
	places := []struct {
		title   string
		x, y, w int
		lines   []string
	}{
		{"Reflector", 205, 40, 225, reflectorLines(n)},
		{"FIFO", 490, 40, 220, fifoLines(n)},
		{"Indexer", 770, 40, 250, indexerLines(n)},
		{"Workqueue", 490, 250, 220, workqueueLines(n)},
		{"Reconciler", 770, 250, 250, reconcilerLines(n)},
		{"Lease", 205, 250, 225, leaseLines(n)},
	}
	boxes := make([]Box, len(places))
	for i, p := range places {
		boxes[i] = Box{Verdict: verdicts[i], Title: p.title, X: p.x, Y: p.y, W: p.w, Lines: p.lines}
	}
	return boxes
}

func sum[T any](of []T, number func(*T) int64) (total int64) {
	for i := range of {
		total += number(&of[i])
	}
	return total
}

func reflectorLines(n Numbers) []string {
	open := sum(n.Reflector, func(r *Reflector) int64 {
		if r.Connected.IsZero() {
			return 0
		}
		return 1
	})
	var quiet time.Time // the last byte of the watch that has been silent for longest
	for _, r := range n.Reflector {
		if !r.LastByte.IsZero() && (quiet.IsZero() || r.LastByte.Before(quiet)) {
			quiet = r.LastByte
		}
	}
	return []string{
		fmt.Sprintf("%d of %d watches open", open, len(n.Reflector)),
		"quietest heard " + since(n.At, quiet),
		fmt.Sprintf("%s relists, %s × 410", page.Number(sum(n.Reflector, func(r *Reflector) int64 { return r.Relists() })),
			page.Number(sum(n.Reflector, func(r *Reflector) int64 { return r.Expired }))),
	}
}

func fifoLines(n Numbers) []string {
	return []string{
		page.Number(sum(n.FIFO, func(q *FIFO) int64 { return q.Queued })) + " queued",
		page.Number(sum(n.FIFO, func(q *FIFO) int64 { return q.Handled })) + " handled",
	}
}

func indexerLines(n Numbers) []string {
	seen := sum(n.Indexer, func(i *Indexer) int64 { return i.Seen })
	return []string{
		fmt.Sprintf("%s objects, %s kept", page.Number(sum(n.Indexer, func(i *Indexer) int64 { return int64(i.Objects) })),
			size(sum(n.Indexer, func(i *Indexer) int64 { return i.Bytes }))),
		fmt.Sprintf("%s of %s seen dropped", share(sum(n.Indexer, func(i *Indexer) int64 { return i.Dropped }), seen), page.Number(seen)),
	}
}

func workqueueLines(n Numbers) []string {
	q := n.Workqueue
	waits := "nothing waits"
	if !q.Oldest.IsZero() {
		waits = "oldest waits " + span(n.At.Sub(q.Oldest))
	}
	return []string{
		fmt.Sprintf("depth %d, %s", q.Depth, waits),
		fmt.Sprintf("%s changes, %.0f a key", page.Number(q.Asked), q.Ratio()),
		page.Number(q.Retries) + " retries",
	}
}

func reconcilerLines(n Numbers) []string {
	r := &n.Reconciler
	last := "last pass " + since(n.At, r.Last)
	if !r.Running.IsZero() {
		last = "running for " + span(n.At.Sub(r.Running))
	}
	lines := []string{last}
	if r.Outcome != "" {
		lines = append(lines, fmt.Sprintf("%s in %s", r.Outcome, seconds(r.Seconds)))
	}
	return append(lines, fmt.Sprintf("%s written, %s skipped", page.Number(r.Publishes[string(Written)]), page.Number(r.Publishes[string(Unchanged)])))
}

func leaseLines(n Numbers) []string {
	l := &n.Lease
	switch {
	case !l.Elected:
		return []string{"no election", "always our turn"}
	case l.Leading:
		return []string{"our turn", fmt.Sprintf("term %d", l.Term), "renewed " + since(n.At, l.Renewed)}
	}
	return []string{"standing by", cmp.Or(l.Holder, "nobody") + " holds it"}
}
