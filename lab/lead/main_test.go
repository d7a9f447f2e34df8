// Package lead_test repeats on a real API server what internal/lead shows in
// virtual time: a leader whose traffic about the Lease, and nothing else, stalls.
package lead_test

import (
	"os"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

var lab *plane.Plane

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m, plane.Options{
		Progress: os.Stderr,
		// Their own leases are no business of ours, and nothing here needs them.
		Without: []string{plane.ControllerManager, plane.Scheduler, plane.KWOK},
	}, func(p *plane.Plane) { lab = p }))
}
