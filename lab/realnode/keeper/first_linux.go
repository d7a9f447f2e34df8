package keeper

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// readyWord is what the first process writes to its pipe, the first file after
// standard error.
const (
	readyWord = "ready"
	readyFile = 3
)

// first furnishes the namespaces that this process is the first one of, and then
// only waits for the processes whose parents have ended.
func first(p Place) error {
	// Started by hand it would cover directories of the machine.
	if os.Getpid() != 1 {
		return errors.New("this is not the first process of a namespace: kubelet-keeper keep starts that")
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	if err := p.mount(); err != nil {
		return err
	}
	if err := p.network(); err != nil {
		return err
	}
	ready := os.NewFile(readyFile, "ready")
	if _, err := ready.WriteString(readyWord); err != nil {
		return fmt.Errorf("say that the namespaces are ready: %w", err)
	}
	if err := ready.Close(); err != nil {
		return err
	}
	for range children {
		// One signal can stand for several children.
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 || (err != nil && !errors.Is(err, syscall.EINTR)) {
				break
			}
		}
	}
	return nil
}

// tunables are settings of the whole machine that a kubelet changes. It finds these
// files in their place, with what it wants in them, and leaves the machine alone.
var tunables = map[string]int{
	"vm/overcommit_memory":      1,
	"vm/panic_on_oom":           0,
	"kernel/panic":              10,
	"kernel/panic_on_oops":      1,
	"kernel/keys/root_maxkeys":  1000000,
	"kernel/keys/root_maxbytes": 25000000,
}

func (p Place) mount() error {
	// Nothing that is mounted from here on is seen outside.
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE); err != nil {
		return err
	}
	// Processes as they are counted in here.
	if err := mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
		return err
	}
	for name, value := range tunables {
		file := filepath.Join(p.Dir, "tunables", strings.ReplaceAll(name, "/", "."))
		if err := bindFile(file, filepath.Join("/proc/sys", name), strconv.Itoa(value)); err != nil {
			return err
		}
	}
	programs := filepath.Join(p.Folder("run"), "programs")
	for name, path := range p.Programs {
		target := filepath.Join(programs, name)
		if err := put(target, ""); err != nil {
			return err
		}
		if err := mount(path, target, "", unix.MS_BIND); err != nil {
			return err
		}
	}
	for name, path := range seen {
		if err := mount(p.Folder(name), path, "", unix.MS_BIND|unix.MS_REC); err != nil {
			return err
		}
	}
	// A kubelet wants to see what is mounted in containers, and they what it mounts.
	return mount("", "/", "", unix.MS_REC|unix.MS_SHARED)
}

func mount(source, target, kind string, flags uintptr) error {
	if err := unix.Mount(source, target, kind, flags, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}

// bindFile covers a file with one that has this text.
func bindFile(file, target, text string) error {
	if err := put(file, text); err != nil {
		return err
	}
	return mount(file, target, "", unix.MS_BIND)
}

func put(path, text string) error {
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		return fmt.Errorf("furnish the node: %w", err)
	}
	return nil
}
