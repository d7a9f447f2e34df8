// Package integration runs the controller against a real API server, scheduler
// and controller manager. KWOK plays the kubelets.
//
// The controller runs inside the test process, so that the race detector and
// client-go's own detectors (KUBE_CACHE_MUTATION_DETECTOR,
// KUBE_WATCHLIST_INCONSISTENCY_DETECTOR) watch it too. Where its exit status is
// what matters, the real binary is started. One control plane serves all tests;
// each of them cleans up behind itself, so that the next one finds no node.
package integration

import (
	"os"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

var lab *plane.Plane

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m, plane.Options{Progress: os.Stderr, Audit: true}, func(p *plane.Plane) { lab = p }))
}
