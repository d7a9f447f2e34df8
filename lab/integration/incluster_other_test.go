//go:build !linux

package integration

import (
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/lab/install"
)

func testInCluster(t *testing.T, _ install.Tools) {
	t.Skip("needs Linux, where a process can have a file system of its own")
}
