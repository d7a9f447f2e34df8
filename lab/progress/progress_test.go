package progress_test

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/gpu-summary/gpu-summary-controller/lab/progress"
)

// duration and rate differ from run to run.
var elapsed = regexp.MustCompile(`in \S+ \(\d+/s\)`)

func TestPlainOutputIsALineEveryTenPercent(t *testing.T) {
	var out bytes.Buffer
	bar := progress.New(&out, 40, "nodes")
	for range 40 {
		bar.Add(1)
	}
	bar.Done()
	bar.Done()

	want := []string{
		"nodes: 10 % (4 of 40)",
		"nodes: 20 % (8 of 40)",
		"nodes: 30 % (12 of 40)",
		"nodes: 40 % (16 of 40)",
		"nodes: 50 % (20 of 40)",
		"nodes: 60 % (24 of 40)",
		"nodes: 70 % (28 of 40)",
		"nodes: 80 % (32 of 40)",
		"nodes: 90 % (36 of 40)",
		"nodes: 40 of 40 in T (R/s)",
	}
	if diff := cmp.Diff(want, lines(out.String())); diff != "" {
		t.Errorf("plain output (-want +got):\n%s", diff)
	}
}

func TestPlainOutputOfLeapsAndOfWorkGivenUp(t *testing.T) {
	var out bytes.Buffer
	bar := progress.New(&out, 100, "pods")
	bar.Add(35) // one line, not three
	bar.Add(1)
	bar.Add(6)
	bar.Done()

	want := []string{
		"pods: 35 % (35 of 100)",
		"pods: 42 % (42 of 100)",
		"pods: 42 of 100 in T (R/s)",
	}
	if diff := cmp.Diff(want, lines(out.String())); diff != "" {
		t.Errorf("plain output (-want +got):\n%s", diff)
	}
}

func TestMoreThanAnnouncedStaysAtTheTotal(t *testing.T) {
	var out bytes.Buffer
	bar := progress.New(&out, 2, "pods")
	bar.Add(3)
	bar.Done()
	if diff := cmp.Diff([]string{"pods: 2 of 2 in T (R/s)"}, lines(out.String())); diff != "" {
		t.Errorf("plain output (-want +got):\n%s", diff)
	}
}

func TestNilWriterIsSilentAndManyGoroutinesAreFine(*testing.T) {
	for _, w := range []io.Writer{nil, io.Discard} {
		bar := progress.New(w, 1000, "events")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 125 {
					bar.Add(1)
				}
			})
		}
		wg.Wait()
		bar.Done()
	}
}

func TestTerminalGetsABar(t *testing.T) {
	t.Setenv("TERM", "xterm")
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo terminal here: %v", err)
	}
	defer master.Close()
	// A pseudo terminal buffers only a little: a full one would block Add.
	read := make(chan string)
	go func() {
		all, _ := io.ReadAll(master)
		read <- string(all)
	}()
	show(terminal)

	select {
	case got := <-read:
		if !strings.Contains(got, "\r") || !strings.Contains(got, "100%") {
			t.Errorf("no bar on a terminal: %q", got)
		}
		if !strings.Contains(got, "nodes: 5 of 5") {
			t.Errorf("no closing line on a terminal: %q", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("output of the terminal not read within 10 s")
	}
}

func show(terminal *os.File) {
	defer terminal.Close()
	bar := progress.New(terminal, 5, "nodes")
	for range 5 {
		bar.Add(1)
	}
	bar.Done()
}

func lines(s string) []string {
	s = elapsed.ReplaceAllString(s, "in T (R/s)")
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
