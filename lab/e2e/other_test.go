//go:build !linux

package e2e

import (
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/lab/realnode"
)

// TestEverything stands for all tests, which are for Linux.
func TestEverything(t *testing.T) { t.Skip(realnode.Check()) }
