package publish

import (
	"fmt"
	"time"
)

// eventInterval is the least time between two Events of one reason about one
// object. client-go makes one of equal Events and keeps the note of the first. It
// forgets an Event between 6 and 12 minutes after it, so this has to be longer.
const eventInterval = 15 * time.Minute

// story is the state of one object, a reason, and which of its states was told
// last. What is told is the state that it is in, and not how it came there: one that
// changes back before it is told needs no Event, and one that changes too often is
// told late, but then it is right.
type story struct {
	is, told string
	changes  int // since the last Event
	last     map[string]time.Time
}

func (s *story) become(state string) {
	if state != s.is {
		s.is = state
		s.changes++
	}
}

// due reports whether there is something to tell now, and if it is too early for it
// when it will be.
func (s *story) due(now time.Time) (due bool, at time.Time) {
	if s.is == s.told {
		return false, never
	}
	if last, ok := s.last[s.is]; ok && now.Before(last.Add(eventInterval)) {
		return false, last.Add(eventInterval)
	}
	return true, never
}

// tell notes that the state is told, and returns what has to be said of those before
// it that were not.
func (s *story) tell(now time.Time) (unsaid string) {
	if s.changes > 1 {
		unsaid = fmt.Sprintf(" (after %d more changes without an Event)", s.changes-1)
	}
	if s.last == nil {
		s.last = make(map[string]time.Time)
	}
	s.told, s.changes, s.last[s.is] = s.is, 0, now
	return unsaid
}

// quiet reports whether the next change may be told at once.
func (s *story) quiet(now time.Time) bool {
	for _, last := range s.last {
		if now.Before(last.Add(eventInterval)) {
			return false
		}
	}
	return true
}

// never is a time that does not come.
var never time.Time

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
