package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
)

// beside builds a program that few need into bin of the checkout, beside this command,
// and returns its path. The module is a folder of the lab's, "" for the lab itself. Two
// checkouts never run each other's.
func beside(ctx context.Context, job compile.Job, module, program string, progress io.Writer) (string, error) {
	lab, err := compile.Module()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(filepath.Dir(lab), "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("make directory for %s: %w", program, err)
	}
	if err := job.Into(ctx, filepath.Join(lab, module), bin, progress); err != nil {
		return "", err
	}
	// A signal that came last was meant for the whole command.
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return filepath.Join(bin, program), nil
}

// become runs a program in place of this process: signals, terminal and exit status are
// its own then. It returns only if that cannot be done.
func become(path, name string, args, env []string) error {
	err := syscall.Exec(path, append([]string{name}, args...), env)
	return fmt.Errorf("run %s: %w", path, err)
}
