// Package tether makes a process end together with the one that started it,
// however that one ends.
//
// The parent opens a pipe, keeps the writing end to itself and hands the
// reading end to every child. It never writes. When it is gone, also by
// SIGKILL, the kernel closes the writing end and every child reads the end of
// the file. That needs no process id, which might belong to someone else by
// then, and works on every Unix.
package tether

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// EnvFD names the environment variable with the number of the inherited
// reading end.
const EnvFD = "GPU_SUMMARY_LAB_TETHER_FD"

// Hold ties this process to its parent; call it first in main. Without the
// variable, as when started by hand, it does nothing.
func Hold() {
	// No orderly shutdown: with the lab gone there is nobody to keep state for,
	// and a component waiting for a peer that also ends would linger.
	OnEnd(func() {
		fmt.Fprintln(os.Stderr, "the process that started this one is gone: exiting")
		os.Exit(1)
	})
}

// OnEnd is Hold for a process that has to clean up: end is called, in a goroutine
// of its own, when the parent is gone.
func OnEnd(end func()) {
	value, ok := os.LookupEnv(EnvFD)
	if !ok {
		return
	}
	fd, err := strconv.Atoi(value)
	if err != nil {
		fmt.Fprintf(os.Stderr, "read %s: %v\n", EnvFD, err)
		os.Exit(2)
	}
	// What this process starts itself is not the parent's child: it must
	// neither see the variable nor inherit the pipe.
	os.Unsetenv(EnvFD)
	syscall.CloseOnExec(fd)
	line := os.NewFile(uintptr(fd), "tether")
	go func() {
		// Nothing is ever written, so this returns at the end of the file only.
		_, _ = line.Read(make([]byte, 1))
		end()
	}()
}
