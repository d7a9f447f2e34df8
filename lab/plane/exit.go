package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// tailLines and tailWidth bound what an error shows of a log. etcd explains
// a wrong flag first and shows 24 lines of usage after it.
const (
	tailLines = 25
	tailWidth = 400
)

// ExitError is the end of a component that nobody asked for.
type ExitError struct {
	Component string
	Err       error  // exit status or signal
	LogPath   string // removed when the plane stops
	Tail      string // the last lines of the log
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s ended by itself: %v%s", e.Component, e.Err, indent(e.Tail))
}

func (e *ExitError) Unwrap() error { return e.Err }

func (c *Component) exitError(p *process) *ExitError {
	err := p.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	return &ExitError{Component: c.name, Err: err, LogPath: c.log, Tail: tail(c.log)}
}

// tail returns the last lines of a file, "" when it cannot be read: it only
// ever decorates an error that says more.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = tailLines * tailWidth * 2
	if _, err := f.Seek(-most, io.SeekEnd); err != nil {
		_, _ = f.Seek(0, io.SeekStart) // shorter than that
	}
	data, _ := io.ReadAll(f)
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		if len(line) > tailWidth {
			lines[i] = strings.ToValidUTF8(line[:tailWidth], "") + " …"
		}
	}
	return strings.Join(lines, "\n")
}

func quoteTail(log string) string { return indent(tail(log)) }

// indent does not name the file: often the plane, and the file with it, is
// gone when the error is read.
func indent(text string) string {
	if text == "" {
		return ""
	}
	return "\nlast lines of its log:\n  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// errEnded says that the process polled for has ended.
var errEnded = errors.New("process ended")

// pollInterval is short because starting a plane consists of such waits.
const pollInterval = 100 * time.Millisecond

// poll calls try until it succeeds. It gives up when ctx ends, with the cause
// and the last failure, or with errEnded when ended is closed.
func poll(ctx context.Context, ended <-chan struct{}, try func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		// That time is up says nothing about what is waited for.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ticker.C:
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("%w (last answer: %s)", context.Cause(ctx), last.Error())
		}
	}
}
