//go:build !linux

package plane

import "syscall"

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func untilStopped(int) error { return nil }
