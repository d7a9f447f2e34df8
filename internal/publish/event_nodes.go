package publish

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// DefaultEventDelay is how long a node has to be overcommitted before it is told. A
// device plugin that is being replaced is back sooner, and on every node in turn.
const DefaultEventDelay = 30 * time.Second

// nodeEvents is how many Events about nodes there are in an hour at most. The API
// server keeps an Event for an hour, and nobody reads more. Nodes beyond it are
// named together.
const nodeEvents = 60

// nodes are those that are overcommitted, or were a moment ago. No other is
// remembered.
type nodes struct {
	delay  time.Duration
	begun  bool // there was a pass
	known  map[string]*node
	spent  []time.Time          // the Events about nodes in the last hour
	summed map[string]time.Time // when nodes were last named together, by reason
}

// node is one that needs watching. An episode begins when it is overcommitted and
// ends when it was not for as long as the delay. One that flaps is thus overcommitted
// for the whole time, which takes a single Event.
type node struct {
	story
	over   bool      // now
	turned time.Time // when that last changed
	since  time.Time // when the episode began
	// old is one that was overcommitted when we came. Whoever led before us has told
	// it, and a restart is no reason to repeat 500 Events.
	old  bool
	rows []count.Row
}

func (n *nodes) observe(snap *count.Snapshot, now time.Time) {
	if !snap.NodesKnown {
		return
	}
	for _, k := range n.known {
		k.rows = nil
	}
	for i := range snap.Rows {
		row := &snap.Rows[i]
		k := n.known[row.Node]
		if k == nil && row.Overcommitted > 0 {
			k = &node{story: story{is: EventRecovered, told: EventRecovered}, old: !n.begun}
			n.known[row.Node] = k
		}
		if k != nil {
			k.rows = append(k.rows, *row)
		}
	}
	n.begun = true
	for name, k := range n.known {
		k.settle(now, n.delay)
		k.turn(slices.ContainsFunc(k.rows, overcommitted), now, n.delay)
		if !k.over && !now.Before(k.turned.Add(n.delay)) && k.told == EventRecovered && k.quiet(now) {
			delete(n.known, name)
		}
	}
}

func overcommitted(row count.Row) bool { return row.Overcommitted > 0 }

func (k *node) turn(over bool, now time.Time, delay time.Duration) {
	if over == k.over {
		return
	}
	if over && (k.turned.IsZero() || !now.Before(k.turned.Add(delay))) {
		k.since = now
	}
	k.over, k.turned = over, now
}

// settle decides which state it is in, and returns when it will be in another unless
// a pass comes before.
func (k *node) settle(now time.Time, delay time.Duration) (next time.Time) {
	if k.turned.IsZero() {
		return never // it is new
	}
	state, at := EventRecovered, k.turned.Add(delay)
	if k.over {
		state, at = EventOvercommitted, k.since.Add(delay)
	}
	if now.Before(at) {
		if k.is != state {
			return at
		}
		return never
	}
	k.become(state)
	k.old = k.old && k.over
	return never
}

// due returns the Events about nodes, those that are left over named together in
// Events about the ConfigMap.
func (n *nodes) due(base corev1.ObjectReference, now time.Time) (events []Event, next time.Time) {
	n.spent = slices.DeleteFunc(n.spent, func(at time.Time) bool { return !now.Before(at.Add(time.Hour)) })
	left := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(n.known)) {
		k := n.known[name]
		next = earliest(next, k.settle(now, n.delay))
		due, at := k.due(now)
		switch next = earliest(next, at); {
		case !due:
		case k.old || len(n.spent) >= nodeEvents:
			left[k.is] = append(left[k.is], name)
		default:
			n.spent = append(n.spent, now)
			events = append(events, k.event(name, base, now))
		}
	}
	for _, state := range []string{EventOvercommitted, EventRecovered} {
		if len(left[state]) == 0 {
			continue
		}
		if last, ok := n.summed[state]; ok && now.Before(last.Add(eventInterval)) {
			next = earliest(next, last.Add(eventInterval))
			continue
		}
		n.summed[state] = now
		events = append(events, n.together(state, left[state], base, now))
	}
	return events, next
}

func (k *node) event(name string, base corev1.ObjectReference, now time.Time) Event {
	e := Event{Regarding: nodeReference(name), Related: &base, Reason: k.is, Action: actionCount}
	if k.is == EventOvercommitted {
		e.Type = corev1.EventTypeWarning
		e.Note = fmt.Sprintf("Pods hold more GPUs than are healthy, for %v: %s", now.Sub(k.since).Round(time.Second), k.numbers())
	} else {
		e.Type = corev1.EventTypeNormal
		e.Note = "Pods hold no more GPUs than are healthy: " + k.numbers()
	}
	unsaid := k.tell(now)
	e.Note = clip(e.Note, maxNote-len(unsaid)) + unsaid
	return e
}

// numbers are those of the rows that are overcommitted, or of all if none is.
func (k *node) numbers() string {
	if len(k.rows) == 0 {
		return "none are left, and none are counted here"
	}
	var texts []string
	for _, row := range k.rows {
		if k.over && !overcommitted(row) {
			continue
		}
		text := fmt.Sprintf("%d of %s requested, %d of %d healthy", row.Requested, row.Resource, row.Allocatable, row.Capacity)
		if row.Source == count.DynamicResources {
			text += " (DRA)"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// maxNames is for nodes that are named together.
const maxNames = 10

func (n *nodes) together(state string, names []string, base corev1.ObjectReference, now time.Time) Event {
	old := 0
	for _, name := range names {
		k := n.known[name]
		if k.old {
			old++
		}
		k.tell(now)
	}
	text := strings.Join(names[:min(len(names), maxNames)], ", ")
	if more := len(names) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	e := Event{Regarding: base, Type: corev1.EventTypeNormal, Reason: EventNodesRecovered, Action: actionCount}
	about := "recovered"
	if state == EventOvercommitted {
		e.Type, e.Reason, about = corev1.EventTypeWarning, EventNodesOvercommitted, "overcommitted"
	}
	why := fmt.Sprintf("there are no more than %d Events about nodes in an hour", nodeEvents)
	if old == len(names) {
		why = "they were when publishing started"
	}
	e.Note = clip(fmt.Sprintf("%s %s without an Event of their own, for %s: %s", amount(len(names), "node"), about, why, text), maxNote)
	return e
}
