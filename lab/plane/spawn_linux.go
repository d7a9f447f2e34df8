package plane

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// untilStopped waits until every thread of a child has taken SIGSTOP: the signal is
// sent long before, on a busy machine. A child that ends instead is not waited for.
func untilStopped(pid int) error {
	for {
		// What others wait for, the end of the child, is left to them.
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
