package demo

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/gpu-summary/gpu-summary-controller/lab/progress"
)

// plainBeats is after how many beats a line is due where none can be replaced.
const plainBeats = 10

// status is what the status line says.
type status struct {
	Published
	running, writes int
}

func (s status) String() string {
	return fmt.Sprintf("requested %d of %d  free %d  pending %d  jobs running %d  ConfigMap written %d times",
		s.Requested, s.Allocatable, s.Free, s.Pending, s.running, s.writes)
}

// statusLine is one line that is replaced on a terminal, and now and then a new one
// elsewhere.
type statusLine struct {
	w     io.Writer
	width func() int // 0 when w is no terminal
	open  bool       // the cursor stands in the line
}

func newStatusLine(w io.Writer) *statusLine {
	width := func() int { return 0 }
	if f, ok := w.(*os.File); ok && progress.IsTerminal(w) {
		width = func() int {
			if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 1 {
				return columns
			}
			return 80
		}
	}
	return &statusLine{w: w, width: width}
}

// show shows the text at beat n.
func (l *statusLine) show(n int, text string) {
	width := l.width()
	if width == 0 {
		if n%plainBeats == 0 {
			fmt.Fprintln(l.w, text)
		}
		return
	}
	// A line that wraps could not be replaced.
	fmt.Fprintf(l.w, "\r%.*s\x1b[K", width-1, text)
	l.open = true
}

// end leaves the cursor at the beginning of a line.
func (l *statusLine) end() {
	if l.open {
		fmt.Fprintln(l.w)
		l.open = false
	}
}
