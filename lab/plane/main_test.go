package plane_test

import (
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

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
