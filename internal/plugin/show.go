package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// watching is --watch and what goes with it.
type watching struct {
	on    bool
	every time.Duration
}

const defaultInterval = 5 * time.Second

func (w *watching) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&w.on, "watch", "w", w.on, "show it again and again until interrupted: in place on a terminal, else one after the other as it changes")
	cmd.Flags().DurationVar(&w.every, "interval", defaultInterval, "pause between two readings of --watch")
}

const (
	home        = "\x1b[H" // the cursor to the top left
	restOfLine  = "\x1b[K" // erase it
	restOfFrame = "\x1b[J" // erase everything below
	leastPause  = time.Second
)

// show makes a view and prints it, once or, with --watch, until ctx ends, which is then
// no error. What cannot be read the first time is an error; later it is shown and tried
// again.
func (c *common) show(ctx context.Context, w watching, make func(context.Context) (*view, error)) error {
	if !w.on {
		v, err := make(ctx)
		if err != nil {
			return err
		}
		return c.print(v)
	}
	switch {
	case c.from != "":
		return errors.New("--watch: a dump does not change; leave out --from or --watch")
	case w.every < leastPause:
		return fmt.Errorf("--interval=%v: must be at least %v, for the API server's sake", w.every, leastPause)
	}
	f := frames{common: c, every: w.every}
	for ctx.Err() == nil {
		if v, err := make(ctx); ctx.Err() == nil {
			if err := f.next(v, err); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-c.after(w.every):
		}
	}
	return nil
}

// frames is the output of --watch.
type frames struct {
	*common
	every time.Duration
	shown bool
	body  []byte    // the last view
	at    time.Time // when it was read
}

// next shows the next view, or why there is none.
func (f *frames) next(v *view, err error) error {
	if err != nil && !f.shown {
		return err
	}
	s := f.screen()
	if err != nil {
		_, message := Status(err)
		if s.terminal {
			return f.draw(s, s.paint(red, "This is from "+f.at.Format(time.TimeOnly)+". "+message))
		}
		fmt.Fprintln(f.ErrOut, message)
		return nil
	}
	body, err := v.render(f.format(), s)
	if err != nil {
		return err
	}
	f.at = f.now()
	if s.terminal {
		for _, note := range v.notes {
			body = append(body, "note: "+clean(note)+"\n"...)
		}
		f.shown, f.body = true, body
		return f.draw(s, "")
	}
	if f.shown && bytes.Equal(body, f.body) {
		return nil
	}
	separator := ""
	if f.shown && f.output == formatYAML {
		separator = "---\n"
	}
	f.shown, f.body = true, body
	f.note(v.notes)
	return f.write(separator + string(body))
}

// draw writes over what is on the screen, line by line, so that nothing flickers. What
// does not fit is left out and counted, and the end is shown: the screen would scroll.
func (f *frames) draw(s screen, problem string) error {
	lines := []string{s.paint(faint, fmt.Sprintf("%s, every %v, Ctrl-C ends", f.now().Format(time.TimeOnly), f.every))}
	if problem != "" {
		lines = append(lines, strings.Split(problem, "\n")...)
	}
	lines = append(lines, strings.Split(strings.TrimSuffix(string(f.body), "\n"), "\n")...)
	if room := s.height - 1; room > 1 && len(lines) > room {
		end := min(6, room/3) // where the totals are
		hidden := len(lines) - room + 1
		lines = slices.Concat(lines[:room-1-end], []string{s.paint(faint, fmt.Sprintf("%s more", plural(hidden, "line")))}, lines[len(lines)-end:])
	}
	var b strings.Builder
	b.WriteString(home)
	for _, line := range lines {
		b.WriteString(line + restOfLine + "\n")
	}
	b.WriteString(restOfFrame)
	return f.write(b.String())
}
