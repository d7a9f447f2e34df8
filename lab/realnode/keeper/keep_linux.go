package keeper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane/tether"
)

// The two lives of the command: outside, and as the first process inside.
const (
	keepCommand  = "keep"
	firstCommand = "first"
)

func init() {
	// The kernel would kill this process together with the lab, before it has
	// cleared up. That hangs on the thread it was started as, which init runs on.
	if len(os.Args) > 1 && os.Args[1] == keepCommand {
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)
	}
}

// Args are the arguments that make the command keep the place in the file.
func Args(file string) []string { return []string{keepCommand, file} }

// Run is the command.
func Run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: kubelet-keeper keep FILE (as the lab starts it)")
	}
	p, err := read(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case keepCommand:
		return keep(p, args[1])
	case firstCommand:
		return first(p)
	default:
		return fmt.Errorf("%q is neither %s nor %s", args[0], keepCommand, firstCommand)
	}
}

func keep(p Place, file string) (err error) {
	gone := make(chan struct{})
	tether.OnEnd(func() { close(gone) })
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)

	sweep()
	defer func() { err = errors.Join(err, p.Clear()) }()
	if err := newGroups(p.ID).make(); err != nil {
		return err
	}
	// The first process is killed when this thread ends.
	runtime.LockOSThread()
	ready, cmd, err := startFirst(file)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// Its end closes the pipe too, so this does not wait for ever.
	if word, _ := io.ReadAll(ready); string(word) != readyWord {
		return fmt.Errorf("make the node's namespaces: the first process in them ended: %w", <-ended)
	}
	announced := p.announce(cmd.Process.Pid)
	if announced == nil {
		select {
		case err := <-ended:
			return fmt.Errorf("the first process in the node's namespaces ended: %w", err)
		case <-gone:
		case <-stop:
		}
	}
	// When it is gone, so is everything in its namespaces: the kernel sees to that
	// before it lets us know.
	killed := cmd.Process.Kill()
	<-ended //nolint:errcheck // that it was killed
	return errors.Join(announced, killed)
}

// Clear removes control groups and files of a node whose processes have ended, or are
// about to. Only where the keeper was killed is anything left to do.
func (p Place) Clear() error {
	return errors.Join(newGroups(p.ID).remove(), os.RemoveAll(p.Dir))
}

// announce tells the lab, which looks for the file.
func (p Place) announce(pid int) error {
	temp := p.firstPid() + ".tmp"
	if err := os.WriteFile(temp, []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return fmt.Errorf("say that the node's place is ready: %w", err)
	}
	return os.Rename(temp, p.firstPid())
}

// startFirst starts this program as the first process of new namespaces, and returns
// a pipe on which it says that it is ready.
func startFirst(file string) (*os.File, *exec.Cmd, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make the node's namespaces: %w", err)
	}
	defer write.Close()
	cmd := exec.Command("/proc/self/exe", firstCommand, file)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make the node's namespaces: %w", err), read.Close())
	}
	return read, cmd, nil
}

// sweep removes what nodes have left whose keeper was killed.
func sweep() {
	for _, group := range abandonedGroups() {
		_ = newGroups(group).remove()
	}
	dirs, err := os.ReadDir(shortDir)
	if err != nil {
		return
	}
	for _, dir := range dirs {
		if info, err := dir.Info(); err == nil && dir.IsDir() && abandoned(dir.Name()) && ours(info) {
			_ = os.RemoveAll(filepath.Join(shortDir, dir.Name()))
		}
	}
}

// ours reports whether a file belongs to this user: names in a directory that all may
// write to say nothing.
func ours(info os.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Getuid()
}
