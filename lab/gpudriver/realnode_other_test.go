//go:build !linux

package gpudriver

import "github.com/gpu-summary/gpu-summary-controller/lab/plane"

func nodeOptions() plane.Options { return plane.Options{} }

func stopRealNode() error { return nil }
