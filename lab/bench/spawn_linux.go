package bench

import "syscall"

// childAttributes lets the kernel end a child whose parent is gone. It keeps Ctrl-C from the
// children as well: they are ended in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
