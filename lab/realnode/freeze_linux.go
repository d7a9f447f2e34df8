package realnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	freezeTimeout  = 10 * time.Second
	freezeInterval = 10 * time.Millisecond
)

// Freeze stops all processes of the node where they are (SIGSTOP), kubelet, containerd
// and those in containers alike, as when a machine hangs: connections stay open and
// nothing is answered. It returns when all of them stand still. Thaw lets them go on.
//
// The kernel's freezer of control groups is not used: in the older hierarchy what it has
// frozen cannot be killed, should the lab end meanwhile.
func (n *Node) Freeze(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, freezeTimeout, fmt.Errorf("not all stand still within %s", freezeTimeout))
	defer cancel()
	ticker := time.NewTicker(freezeInterval)
	defer ticker.Stop()
	for {
		// Again and again: one that is not yet stopped may start another.
		moving, err := n.signal(syscall.SIGSTOP, func(state byte) bool { return state != 'T' })
		if err == nil && moving == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("freeze node %s: %w (%d)", n.name, errors.Join(context.Cause(ctx), err), moving), n.Thaw())
		}
	}
}

// Thaw lets the processes of a frozen node go on.
func (n *Node) Thaw() error {
	if _, err := n.signal(syscall.SIGCONT, func(byte) bool { return true }); err != nil {
		return fmt.Errorf("thaw node %s: %w", n.name, err)
	}
	return nil
}

// signal sends a signal to the node's processes in such a state, and returns to how many.
func (n *Node) signal(signal syscall.Signal, in func(state byte) bool) (count int, err error) {
	processes, err := n.processes()
	if err != nil {
		return 0, err
	}
	var errs []error
	for pid, state := range processes {
		if !in(state) {
			continue
		}
		count++
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("send %s to process %d: %w", signal, pid, err))
		}
	}
	return count, errors.Join(errs...)
}

// processes are those of the node and of its containers with their states, but for its
// first, which is no part of what a machine has.
func (n *Node) processes() (map[int]byte, error) {
	first, err := n.place.First()
	if err != nil {
		return nil, err
	}
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", first))
	if err != nil {
		return nil, fmt.Errorf("find the node's processes: %w", err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("find the node's processes: %w", err)
	}
	found := map[int]byte{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == first {
			continue
		}
		dir := filepath.Join("/proc", entry.Name())
		// Containers have namespaces of their own, but are in the node's control group.
		namespace, _ := os.Readlink(filepath.Join(dir, "ns", "pid"))
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		if namespace != own && !inGroup(groups, n.place.ID) {
			continue
		}
		// One that cannot be read has ended, and one that has ended does nothing.
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if err == nil && len(fields) > 0 && !slices.Contains([]byte("ZX"), fields[0][0]) {
			found[pid] = fields[0][0]
		}
	}
	return found, nil
}

func inGroup(groups []byte, id string) bool { return bytes.Contains(groups, []byte("/"+id+"/")) }
