package compile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// collectLittle is for compilers: a process lives for a second or so, and collects
// garbage for a sixth of that if it is let. The limit is for each, and is reached
// by few.
var collectLittle = []string{"GOGC=off", "GOMEMLIMIT=2GiB"}

// Go returns the go command with these arguments, to be run in the module.
func Go(ctx context.Context, module string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	// A workspace around the checkout would bring in other versions. Of settings that
	// are there twice the last counts, the user's for the collector.
	cmd.Env = append(append(slices.Clone(collectLittle), os.Environ()...), "GOWORK=off")
	// Interrupted, go ends its compilers; killed, it would leave them.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// runLines runs cmd and hands take each line of its standard error. It returns
// the last of those that take did not want: what the compiler complained about.
func runLines(cmd *exec.Cmd, take func(string) bool) (last string, err error) {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	var lines []string
	scanner := bufio.NewScanner(stderr)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if line := scanner.Text(); !take(line) {
			lines = append(lines, line)
			lines = lines[max(0, len(lines)-30):]
		}
	}
	err = errors.Join(scanner.Err(), cmd.Wait())
	return strings.Join(lines, "\n"), err
}

// Explain adds what to do when there is no go command, and what it wrote.
func Explain(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: install Go from https://go.dev/dl", err)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}
