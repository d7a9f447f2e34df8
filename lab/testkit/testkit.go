// Package testkit is what tests of several packages need.
package testkit

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"
)

const (
	patience = time.Minute
	poll     = 50 * time.Millisecond
)

// Eventually waits until check returns nil, at most a minute, and says in the end what
// it said last.
func Eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		// That time is up is no news about what is being waited for.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("wait for %s: %v; last: %v", what, ctx.Err(), last)
		}
	}
}

// helperPatience bounds what a helper needs until it reports, a control plane included.
const helperPatience = 3 * time.Minute

// Helper runs this test binary once more, with one more variable in its environment
// ("NAME=value"), by which its TestMain knows what to do. It returns what that writes to
// its standard output as a line of JSON, and how to kill it, which the end of the test
// does at the latest.
func Helper[Report any](t *testing.T, variable string) (report Report, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(stdout).ReadString('\n')
		line <- text
	}()
	select {
	case text := <-line:
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			t.Fatalf("read the helper's report %q: %v", text, err)
		}
	case <-time.After(helperPatience):
		t.Fatalf("the helper has not reported within %s", helperPatience)
	}
	return report, kill
}

// EachProperty visits every property of every object in decoded JSON.
func EachProperty(value any, visit func(object map[string]any, property string)) {
	switch value := value.(type) {
	case map[string]any:
		var properties []string
		for property, inner := range value {
			properties = append(properties, property)
			EachProperty(inner, visit)
		}
		for _, property := range properties {
			visit(value, property)
		}
	case []any:
		for _, inner := range value {
			EachProperty(inner, visit)
		}
	}
}
