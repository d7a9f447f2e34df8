//go:build !linux

package realnode

import (
	"context"
	"errors"
)

// Node is a running node, which there is on Linux only.
type Node struct{}

var errLinux = errors.New("a real node needs Linux: namespaces, control groups and containers are the kernel's")

// Missing names what a real node needs and this machine lacks.
func Missing() []string { return []string{errLinux.Error()} }

// Check returns an error with all that is missing.
func Check() error { return errLinux }

// Start starts nothing here.
func Start(context.Context, Options) (*Node, error) { return nil, errLinux }

// LoadImage loads nothing here.
func (*Node) LoadImage(context.Context, string) error { return errLinux }

// Stop has nothing to stop.
func (*Node) Stop() error { return nil }

// Name returns nothing.
func (*Node) Name() string { return "" }

// KubeletDir returns nothing.
func (*Node) KubeletDir() string { return "" }
