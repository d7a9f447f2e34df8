package plane_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// shared is the plane most tests use. A test that breaks something repairs it.
var shared *plane.Plane

// helperEnv makes this binary a program that starts a plane, or one process
// that knows nothing of tethers, and waits to be killed.
const helperEnv = "GPU_SUMMARY_LAB_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "plane":
		helper()
	case "untethered":
		untetheredHelper()
	}
	flag.Parse()
	if testing.Short() {
		os.Exit(m.Run())
	}
	os.Exit(plane.Main(m, plane.Options{}, func(p *plane.Plane) { shared = p }))
}

func labPlane(t *testing.T) *plane.Plane {
	t.Helper()
	if shared == nil {
		t.Skip("needs a control plane: not with -short")
	}
	return shared
}

func labClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	return clientOf(t, labPlane(t).Config())
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("make client: %v", err)
	}
	return client
}

// eventually waits until check returns nil, at most a minute.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
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

// names makes unique work for go test -count as well: a component keeps its
// name when it is stopped.
var names atomic.Int32

func unique(name string) string { return fmt.Sprintf("%s-%d", name, names.Add(1)) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func pidsOf(p *plane.Plane) map[string]int {
	pids := map[string]int{}
	for _, c := range p.Components() {
		pids[c.Name()] = c.Pid()
	}
	return pids
}
