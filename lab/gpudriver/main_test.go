package gpudriver

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// labPlane is for the tests that need a cluster.
var labPlane *plane.Plane

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		os.Exit(m.Run())
	}
	os.Exit(plane.Main(tests{m}, nodeOptions(), func(p *plane.Plane) { labPlane = p }))
}

// tests stops the real node, if there was one, before the plane is stopped.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	code := t.m.Run()
	if err := stopRealNode(); err != nil {
		fmt.Fprintf(os.Stderr, "stop node: %v\n", err)
		return max(code, 1)
	}
	return code
}

func cluster(t *testing.T) kubernetes.Interface {
	t.Helper()
	if labPlane == nil {
		t.Skip("needs a control plane: not with -short")
	}
	client, err := kubernetes.NewForConfig(labPlane.Config())
	must(t, err)
	return client
}
