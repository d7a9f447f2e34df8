// Package progress shows how far a long piece of work is: as a bar on a
// terminal, and as a line every ten percent where the output is a file or a
// pipe, so that a log of a build stays short.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// step is the part of the whole, in percent, after which a plain line is due.
const step = 10

// Bar counts finished pieces of a known total. It may be used by many
// goroutines at once.
type Bar struct {
	w     io.Writer
	what  string
	total int
	start time.Time

	mu    sync.Mutex
	count int
	shown int // percent of the last plain line
	done  bool
	term  *progressbar.ProgressBar // nil when w is no terminal
}

// New returns a bar for total pieces of work described by what. A nil w is
// silent.
func New(w io.Writer, total int, what string) *Bar {
	b := &Bar{w: w, what: what, total: total, start: time.Now()}
	if IsTerminal(w) {
		b.term = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetWidth(30),
		)
	}
	return b
}

// Add says that n more pieces are finished.
func (b *Bar) Add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done || b.w == nil {
		return
	}
	// More pieces than announced would make the bar claim more than 100 %.
	b.count = min(b.count+n, max(b.total, 0))
	if b.term != nil {
		_ = b.term.Set(b.count)
		return
	}
	percent := b.percent()
	if percent >= b.shown+step && percent < 100 {
		b.shown = percent - percent%step
		fmt.Fprintf(b.w, "%s: %d %% (%d of %d)\n", b.what, percent, b.count, b.total)
	}
}

// Done ends the bar with a line that says what was really reached, which is
// less than everything when the work was given up. Further calls do nothing.
func (b *Bar) Done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done || b.w == nil {
		return
	}
	b.done = true
	if b.term != nil {
		_ = b.term.Exit()
		fmt.Fprint(b.w, "\n")
	}
	took := time.Since(b.start)
	rate := float64(b.count) / max(took.Seconds(), 1e-3)
	fmt.Fprintf(b.w, "%s: %d of %d in %s (%.0f/s)\n", b.what, b.count, b.total, round(took), rate)
}

func (b *Bar) percent() int {
	if b.total <= 0 {
		return 0
	}
	return b.count * 100 / b.total
}

// round keeps three useful digits: 1m3s, 12.3s, 450ms.
func round(d time.Duration) time.Duration {
	switch {
	case d > time.Minute:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(100 * time.Millisecond)
	default:
		return d.Round(time.Millisecond)
	}
}

// IsTerminal reports whether w is a terminal that understands a returning
// cursor; TERM=dumb says it does not.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}
