package plane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane/tether"
)

// spawner starts the processes of one plane so that none of them outlives this
// process, whatever happens to it:
//
//   - Every child inherits the reading end of a pipe that only this process can
//     write to; package tether ends the child when the pipe ends. Stopped
//     children (SIGSTOP) notice as well: their process group has lost its last
//     tie to the session, and the kernel continues such groups, with a SIGHUP.
//   - On Linux the kernel also kills the child itself (Pdeathsig), which asks
//     nothing of the child: not that it has come as far as to hold its tether,
//     nor that it has a thread to spare for it. "Parent" there means the thread
//     that forked, not the process: Go ends threads now and then, and a child
//     started from such a thread would die for no reason. So all children are
//     started by one goroutine that is locked to its thread and lives until
//     close.
//
// It is also what gives each child its own process group: Ctrl-C on a terminal
// goes to the whole foreground group, and the components would all end at once,
// before and without our stopping them in order.
type spawner struct {
	read, write *os.File
	requests    chan spawnRequest
	quit, ended chan struct{}
}

type spawnRequest struct {
	cmd    *exec.Cmd
	result chan error
}

func startSpawner() (*spawner, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make tether: %w", err)
	}
	s := &spawner{
		read:     read,
		write:    write,
		requests: make(chan spawnRequest),
		quit:     make(chan struct{}),
		ended:    make(chan struct{}),
	}
	go s.run()
	return s, nil
}

func (s *spawner) run() {
	defer close(s.ended)
	// Never unlocked: the thread ends with this goroutine, and with it, should
	// there be one that survived all attempts to stop it, every child.
	runtime.LockOSThread()
	for {
		select {
		case request := <-s.requests:
			request.result <- request.cmd.Start()
		case <-s.quit:
			return
		}
	}
}

// start starts the command tethered to this process.
func (s *spawner) start(cmd *exec.Cmd) error {
	cmd.ExtraFiles = []*os.File{s.read}
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", tether.EnvFD, 3)) // ExtraFiles begin after stderr
	cmd.SysProcAttr = childAttributes()
	request := spawnRequest{cmd: cmd, result: make(chan error, 1)}
	select {
	case s.requests <- request:
		return <-request.result
	case <-s.quit:
		return errors.New("the plane has been stopped")
	}
}

// close ends the goroutine and lets go of the tether.
func (s *spawner) close() {
	close(s.quit)
	<-s.ended
	_ = s.write.Close()
	_ = s.read.Close()
}
