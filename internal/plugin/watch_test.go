package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestWatch: a change is shown, what stays the same is not shown again where there is no
// screen to write over, and a reading that fails is tried again.
func TestWatch(t *testing.T) {
	failed := errors.New("unreachable\x1b[2J")
	readings := []struct {
		text string
		err  error
	}{{text: "one"}, {text: "one"}, {err: failed}, {text: "two"}}
	for name, tc := range map[string]struct {
		screen   screen
		format   format
		out, err string
	}{
		"pipe": {out: "one\ntwo\n", err: "unreachable[2J\n"},
		"YAML": {format: formatYAML, out: "text: one\n---\ntext: two\n", err: "unreachable[2J\n"},
		"terminal": {screen: screen{terminal: true, height: 10}, out: frame("one") + frame("one") +
			home + line("12:00:00, every 7s, Ctrl-C ends") + line("This is from 12:00:00. unreachable[2J") + line("one") + restOfFrame + frame("two")},
		"a low one": {screen: screen{terminal: true, height: 3}, out: frame("one") + frame("one") +
			home + line("12:00:00, every 7s, Ctrl-C ends") + line("2 lines more") + restOfFrame + frame("two")},
	} {
		t.Run(name, func(t *testing.T) {
			c, out, errOut := stand{screen: tc.screen}.common()
			c.output = tc.format
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ticks := make(chan time.Time)
			close(ticks)
			c.after = func(pause time.Duration) <-chan time.Time {
				if pause != 7*time.Second {
					t.Errorf("it pauses for %v", pause)
				}
				return ticks
			}
			next := 0
			err := c.show(ctx, watching{on: true, every: 7 * time.Second}, func(context.Context) (*view, error) {
				if next == len(readings) {
					stop() // what was read is not shown any more
					return nil, ctx.Err()
				}
				reading := readings[next]
				next++
				if reading.err != nil {
					return nil, reading.err
				}
				return &view{tables: []table{{after: []string{reading.text}}}, document: map[string]string{"text": reading.text}}, nil
			})
			if err != nil {
				t.Errorf("interrupted, it ends with %v", err)
			}
			if out.String() != tc.out || errOut.String() != tc.err {
				t.Errorf("got %q and %q,\nwant %q and %q", out, errOut, tc.out, tc.err)
			}
		})
	}
}

// TestWatchShowsTheEnd of what is too long for the screen: the totals are there.
func TestWatchShowsTheEnd(t *testing.T) {
	c, out, _ := stand{screen: screen{terminal: true, height: 10}}.common()
	f := frames{common: c, every: time.Second, body: []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n")}
	if err := f.draw(c.screen(), ""); err != nil {
		t.Fatal(err)
	}
	want := home + line("12:00:00, every 1s, Ctrl-C ends") + line("1") + line("2") + line("3") + line("4") + line("13 lines more") +
		line("18") + line("19") + line("20") + restOfFrame
	if out.String() != want {
		t.Errorf("got %q,\nwant %q", out, want)
	}
}

func line(text string) string { return text + restOfLine + "\n" }

func frame(text string) string {
	return home + line("12:00:00, every 7s, Ctrl-C ends") + line(text) + restOfFrame
}

// TestWatchEndsWhenTheFirstReadingFails: a wrong flag does not become right.
func TestWatchEndsWhenTheFirstReadingFails(t *testing.T) {
	got := stand{}.run(t, "--watch")
	if got.status != 1 || !strings.Contains(got.err, errNoneNeeded.Error()) {
		t.Errorf("status %d, %s", got.status, got.err)
	}
}

// TestInterrupted: Ctrl-C during a pause ends --watch with 0.
func TestInterrupted(t *testing.T) {
	c, _, _ := stand{}.common()
	ctx, stop := context.WithCancel(t.Context())
	c.after = func(time.Duration) <-chan time.Time {
		stop()
		return nil
	}
	if err := c.show(ctx, watching{on: true, every: time.Second}, func(context.Context) (*view, error) { return &view{}, nil }); err != nil {
		t.Error(err)
	}
}
