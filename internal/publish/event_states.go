package publish

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// staleAfter is how long passes have to fail before it is news. A conflict, or an
// API server that restarts, is over sooner.
const staleAfter = time.Minute

// fences are the errors by which a write is refused for the sake of a newer one, and
// how long that has to last. Our watch is often behind for a moment.
var fences = []struct {
	err   error
	after time.Duration
}{
	{ErrBehind, 10 * time.Second},
	{ErrFenced, 0},
}

// States turns passes into Events: what changed for the better or worse, and nothing
// else. It is pure, and for one goroutine at a time.
type States struct {
	namespace  string
	publishing publishing
	nodes      nodes
	shapes     map[string]*story
	sets       []Set
}

// NewStates makes the memory of one leader. A node has to be overcommitted, or right
// again, for so long before it is told.
func NewStates(namespace string, delay time.Duration) *States {
	return &States{
		namespace: namespace,
		nodes:     nodes{delay: delay, known: make(map[string]*node), summed: make(map[string]time.Time)},
		shapes:    make(map[string]*story),
	}
}

// Observe takes note of a pass.
func (s *States) Observe(pass Pass, now time.Time) {
	s.sets = pass.Sets
	if pass.Snapshot != nil {
		s.nodes.observe(pass.Snapshot, now)
	}
	s.publishing.observe(pass.Err, now)
	if pass.Err == nil {
		s.observeShapes()
	}
}

// observeShapes takes the first look at a set as how it always was: after a restart
// that is so, and the Event about the start names them.
func (s *States) observeShapes() {
	for _, set := range s.sets {
		is := EventShardsNotNeeded
		if set.Shards > 0 {
			is = EventShardsNeeded
		}
		if shape := s.shapes[set.Name]; shape != nil {
			shape.become(is)
		} else {
			s.shapes[set.Name] = &story{is: is, told: is}
		}
	}
}

// Due returns what is to be told now, and when to ask again even if no pass comes,
// the zero time for never.
func (s *States) Due(now time.Time) (events []Event, next time.Time) {
	if len(s.sets) == 0 {
		return nil, never
	}
	base := configMapReference(s.namespace, s.sets[0])
	next = s.publishing.settle(now)
	due, at := s.publishing.due(now)
	if next = earliest(next, at); due {
		events = append(events, s.publishing.event(base, s.sets, now))
	}
	for _, set := range s.sets {
		shape := s.shapes[set.Name]
		if shape == nil {
			continue
		}
		due, at := shape.due(now)
		if next = earliest(next, at); due {
			events = append(events, shapeEvent(s.namespace, set, shape, now))
		}
	}
	about, at := s.nodes.due(base, now)
	return append(events, about...), earliest(next, at)
}

func shapeEvent(namespace string, set Set, shape *story, now time.Time) Event {
	e := Event{
		Regarding: configMapReference(namespace, set), Type: corev1.EventTypeNormal, Reason: shape.is, Action: actionPublish,
		Note: "The rows fit into this ConfigMap again, those with \"" + shardInfix + "\" in their names are removed",
	}
	if shape.is == EventShardsNeeded {
		first := configMapReference(namespace, Set{Name: shardName(set.Name, 0)})
		e.Related = &first
		e.Note = fmt.Sprintf("The rows are too many for one ConfigMap and are in %s: %s and following", amount(set.Shards, "shard"), first.Name)
	}
	e.Note = clip(e.Note+shape.tell(now), maxNote)
	return e
}

// publishing is whether what is published is right.
type publishing struct {
	story
	passed  bool
	started bool // and it was told
	err     error
	failing time.Time // since when
	fenced  time.Time // from when on it is for the sake of somebody newer
	outage  time.Duration
}

func (p *publishing) observe(err error, now time.Time) {
	p.settle(now)
	if err == nil {
		if !p.failing.IsZero() {
			p.outage = now.Sub(p.failing)
		}
		p.passed, p.failing, p.fenced = true, never, never
		return
	}
	if p.failing.IsZero() {
		p.failing = now
	}
	p.err = err
	from := never
	for _, f := range fences {
		if errors.Is(err, f.err) {
			from = earliest(from, now.Add(f.after))
		}
	}
	if !from.IsZero() {
		from = earliest(from, p.fenced)
	}
	p.fenced = from
}

// settle decides which state it is in, and returns when it will be in another unless
// a pass comes before.
func (p *publishing) settle(now time.Time) (next time.Time) {
	stale := p.failing.Add(staleAfter)
	switch {
	case p.failing.IsZero():
		if p.passed {
			p.become(p.good())
		}
	case !p.fenced.IsZero() && !now.Before(p.fenced):
		p.become(EventPublishingFenced)
	case !now.Before(stale):
		p.become(EventPublishingStale)
		return p.fenced
	default:
		return earliest(p.fenced, stale)
	}
	return never
}

// good is by which name all is well: that which was told, if one was.
func (p *publishing) good() string {
	if !p.started || p.told == EventPublishingStarted {
		return EventPublishingStarted
	}
	return EventPublishingRecovered
}

func (p *publishing) event(base corev1.ObjectReference, sets []Set, now time.Time) Event {
	e := Event{Regarding: base, Type: corev1.EventTypeWarning, Reason: p.is, Action: actionPublish}
	switch p.is {
	case EventPublishingStarted:
		p.started = true
		e.Type, e.Note = corev1.EventTypeNormal, "Publishing "+list(sets)
	case EventPublishingRecovered:
		e.Type, e.Note = corev1.EventTypeNormal, fmt.Sprintf("Publishing again, after %v of: %v", p.outage.Round(time.Second), p.err)
	case EventPublishingFenced:
		e.Note = fmt.Sprintf("Not publishing, for what is published is newer: %v", p.err)
	case EventPublishingStale:
		e.Note = fmt.Sprintf("Not all that is published is up to date, since %v: %v", now.Sub(p.failing).Round(time.Second), p.err)
	}
	unsaid := p.tell(now)
	e.Note = clip(e.Note, maxNote-len(unsaid)) + unsaid
	return e
}

func list(sets []Set) string {
	texts := make([]string, len(sets))
	for i, set := range sets {
		if texts[i] = set.Name; set.Shards > 0 {
			texts[i] += " (in " + amount(set.Shards, "shard") + ")"
		}
	}
	return strings.Join(texts, ", ")
}

func amount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
