package watch

import (
	"sync"
	"time"
)

// shared lets records that say the same have one copy of it: the pods of a node its
// name, nearly all pods one of a few amounts, nodes of one kind the same label. No
// record is ever changed. The zero value has nothing yet.
//
// It remembers what was said lately, so that names of nodes that are gone do not pile
// up. What is said again later is there once more, which only costs its bytes; it is
// lists that say everything at once. (The standard library's unique forgets at the right
// moment, for 180 bytes a name.)
type shared[K comparable, V any] struct {
	mu         sync.Mutex
	began      time.Time // when the first of young was said
	young, old map[K]V
}

// generation is for how long things become young. What nobody says in the next one is
// forgotten after that.
const generation = time.Hour

// of returns what was first said under that key, which is v if nothing was lately.
func (s *shared[K, V]) of(key K, v V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if same, ok := s.young[key]; ok {
		return same
	}
	if now := time.Now(); now.Sub(s.began) > generation {
		s.old, s.young, s.began = s.young, make(map[K]V), now
	}
	if same, ok := s.old[key]; ok {
		v = same
	}
	s.young[key] = v
	return v
}

// sharedList is that for lists of one, which nearly all are.
type sharedList[T comparable] struct{ shared[T, []T] }

func (s *sharedList[T]) of(list []T) []T {
	if len(list) != 1 {
		return list
	}
	return s.shared.of(list[0], list)
}
