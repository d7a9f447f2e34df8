package serve

import (
	"fmt"
	"sync"
	"time"
)

// StuckAfter is how long a pass may take before /livez fails. The longest one that
// we know of takes 13 seconds; a request that hangs is given up by the transport
// within a minute, and a pass makes a few of them at most before it gives up too.
const StuckAfter = 5 * time.Minute

// Progress notices what takes too long: a pass that does not end, or a lease that is
// held and not renewed. What is idle cannot be late.
type Progress struct {
	what  string
	bound time.Duration

	mu    sync.Mutex
	since time.Time // zero when idle
}

// NewProgress makes one that is idle. what completes the sentence "… for 6m0s,
// which is longer than 5m0s": "a pass has been running".
func NewProgress(what string, bound time.Duration) *Progress {
	return &Progress{what: what, bound: bound}
}

// Begin starts the time that is allowed, or starts it again.
func (p *Progress) Begin() { p.set(time.Now()) }

// End makes it idle.
func (p *Progress) End() { p.set(time.Time{}) }

func (p *Progress) set(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = since
}

// Check is nil as long as all is well.
func (p *Progress) Check() error {
	p.mu.Lock()
	since := p.since
	p.mu.Unlock()
	if since.IsZero() {
		return nil
	}
	if late := time.Since(since); late > p.bound {
		return fmt.Errorf("%s for %v, which is longer than %v", p.what, late.Round(time.Second), p.bound)
	}
	return nil
}
