package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// call runs the command with arguments and returns what it prints.
func call(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// TestCommandsReachTheDriver, which needs no kubelet for that.
func TestCommandsReachTheDriver(t *testing.T) {
	dir := t.TempDir()
	in := func(args ...string) []string { return append(args, "--kubelet-dir", dir) }
	if _, err := call(t.Context(), in("devices")...); err == nil || !strings.Contains(err.Error(), "gpudriver.sock") {
		t.Errorf("without a driver: %v, want an error with the socket's name", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := call(ctx, in("run", "--node", "n1", "--resource", "nvidia.com/gpu=2", "--resource", "nvidia.com/mig-3g.20gb=2")...)
		ended <- err
	}()
	deadline := time.After(time.Minute)
	for tick := time.Tick(10 * time.Millisecond); ; {
		if _, err := os.Stat(filepath.Join(dir, "gpudriver.sock")); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the driver ended: %v", err)
		case <-deadline:
			t.Fatal("waited for the control socket")
		case <-tick:
		}
	}

	for _, step := range []struct {
		args []string
		want string // a line of the list afterwards
	}{
		{[]string{"health", "gpu-1", "unhealthy"}, "gpu-1 nvidia.com/gpu 1 unhealthy"},
		{[]string{"health", "gpu-1", "healthy"}, "gpu-1 nvidia.com/gpu 1 healthy"},
		{[]string{"health", "gpu-2", "unhealthy"}, "gpu-2-mig-3g-20gb-1 nvidia.com/mig-3g.20gb 1 unhealthy"},
		{[]string{"vanish"}, "Node n1, device-plugin, away"},
		{[]string{"return"}, "Node n1, device-plugin, present"},
		{[]string{"restart"}, "Node n1, device-plugin, present"},
		{[]string{"use", "device-plugin"}, "Node n1, device-plugin, present"},
	} {
		if _, err := call(ctx, in(step.args...)...); err != nil {
			t.Fatalf("%v: %v", step.args, err)
		}
		list, err := call(ctx, in("devices")...)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(squeeze(list), step.want) {
			t.Errorf("after %v the list has no %q:\n%s", step.args, step.want, list)
		}
	}
	for want, args := range map[string][]string{
		`no device "gpu-9"`:             {"health", "gpu-9", "healthy"},
		"neither healthy nor unhealthy": {"health", "gpu-0", "ill"},
		"needs a client":                {"use", "dra"},
		`"node" not set`:                {"run"},
		"no count":                      {"run", "--node", "n2", "--resource", "nvidia.com/gpu"},
		"read kubeconfig":               {"run", "--node", "n2", "--kubeconfig", filepath.Join(dir, "none")},
	} {
		if _, err := call(ctx, in(args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", args, err, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the driver ended with: %v", err)
	}
}

// squeeze makes single spaces of a table's.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
