package queue

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Counted is a queue that knows what client-go's metrics do not tell: how many changes
// became one key, and since when the oldest key has been waiting.
type Counted struct {
	Queue
	line    *line
	asked   atomic.Int64
	retries atomic.Int64
}

// Numbers is how the queue is at a moment, and what it has done so far.
type Numbers struct {
	// Depth is how many keys wait to be taken, and Oldest since when the first of them
	// does; zero for none. A key that is worked on, or that waits for its next try, is
	// not among them.
	Depth  int
	Oldest time.Time
	// Asked counts the changes that asked for a pass, and Retries the passes that failed
	// and are to be tried again. All of them became HandedOut keys.
	Asked, Retries, HandedOut int64
	// Failures is how many passes have failed in a row.
	Failures int
}

// Add counts, and adds.
func (q *Counted) Add(key Key) {
	q.asked.Add(1)
	q.Queue.Add(key)
}

// AddRateLimited counts, and adds when the back-off has passed.
func (q *Counted) AddRateLimited(key Key) {
	q.retries.Add(1)
	q.Queue.AddRateLimited(key)
}

// Numbers reads them.
func (q *Counted) Numbers() Numbers {
	n := Numbers{Asked: q.asked.Load(), Retries: q.retries.Load(), Failures: q.NumRequeues(Summary)}
	n.Depth, n.Oldest, n.HandedOut = q.line.numbers()
	return n
}

// line is where keys wait their turn, first in, first out.
type line struct {
	clock clock.PassiveClock

	mu        sync.Mutex // the queue has a lock of its own, which readers cannot take
	waiting   []waiting
	handedOut int64
}

type waiting struct {
	key   Key
	since time.Time
}

// Touch is called for a key that waits already. It keeps its place.
func (l *line) Touch(Key) {}

// Push puts a key at the end.
func (l *line) Push(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, waiting{key, l.clock.Now()})
}

// Len is how many keys wait.
func (l *line) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Pop takes the first key. There is one: the queue has asked.
func (l *line) Pop() Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.handedOut++
	return first.key
}

func (l *line) numbers() (depth int, oldest time.Time, handedOut int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 {
		oldest = l.waiting[0].since
	}
	return len(l.waiting), oldest, l.handedOut
}
