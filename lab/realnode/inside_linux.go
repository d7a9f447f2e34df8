package realnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside is a thread of this process that has entered the node's namespaces. It
// starts processes there. They are children of this process, which can wait for them
// and signal them, and end with the first process of their namespace.
type inside struct {
	network     *os.File
	tasks       chan func()
	quit, ended chan struct{}
}

// enter enters the namespaces of a process.
func enter(pid int) (*inside, error) {
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, fmt.Errorf("find the node's network: %w", err)
	}
	i := &inside{network: network, tasks: make(chan func()), quit: make(chan struct{}), ended: make(chan struct{})}
	entered := make(chan error)
	go i.run(pid, entered)
	if err := <-entered; err != nil {
		return nil, errors.Join(fmt.Errorf("enter the node's namespaces: %w", err), network.Close())
	}
	return i, nil
}

func (i *inside) run(pid int, entered chan<- error) {
	defer close(i.ended)
	// Never unlocked: a thread that was there must not run anything else.
	runtime.LockOSThread()
	err := enterAll(pid)
	entered <- err
	if err != nil {
		return
	}
	for {
		select {
		case task := <-i.tasks:
			task()
		case <-i.quit:
			return
		}
	}
}

// enterAll takes this thread into all namespaces. Of that for processes only children
// become part.
func enterAll(pid int) error {
	// Threads of a process share root and working directory, and as long as they do
	// none of them can see other mounts than the others.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	names := []string{"net", "ipc", "pid", "mnt"}
	files := make([]*os.File, len(names))
	for n, name := range names {
		// All of them first: behind the mounts, processes have other numbers.
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
		if err != nil {
			return err
		}
		defer f.Close()
		files[n] = f
	}
	for n, f := range files {
		if err := unix.Setns(int(f.Fd()), 0); err != nil {
			return fmt.Errorf("%s: %w", names[n], err)
		}
	}
	return nil
}

// start starts the command inside.
func (i *inside) start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// Ctrl-C is for the lab, which stops things in order. (No Pdeathsig: Go's os/exec
	// takes a child for an orphan if it cannot see its parent, and kills it.)
	cmd.SysProcAttr.Setpgid = true
	result := make(chan error, 1)
	select {
	case i.tasks <- func() { result <- cmd.Start() }:
		return <-result
	case <-i.quit:
		return errors.New("the node has been stopped")
	}
}

// inNetwork runs a function on a thread of its own in the node's network. Sockets that
// it makes stay there, whoever uses them.
func (i *inside) inNetwork(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good, as above
		if err := unix.Setns(int(i.network.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- fmt.Errorf("enter the node's network: %w", err)
			return
		}
		result <- f()
	}()
	return <-result
}

// dial connects from inside; the address is one of numbers.
func (i *inside) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = i.inNetwork(func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

func (i *inside) listen(address string) (listener net.Listener, err error) {
	err = i.inNetwork(func() error {
		listener, err = net.Listen("tcp4", address)
		return err
	})
	return listener, err
}

func (i *inside) close() error {
	close(i.quit)
	<-i.ended
	return i.network.Close()
}
