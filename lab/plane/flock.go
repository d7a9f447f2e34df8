package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// A lock file says whether its owner is alive: the kernel drops the lock with
// the process, also after SIGKILL, and never gives it to an unrelated one, as
// it does with process ids. Children do not inherit the descriptor.

var errLocked = errors.New("locked by another process")

// tryLock locks the open file without waiting; errLocked means someone else
// has it.
func tryLock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

// lockFile opens (or creates) and locks the file; closing it lets go.
func lockFile(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := tryLock(f, how); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// waitLock is lockFile that waits until the lock is free or ctx ends; waiting
// is called once if that takes time.
func waitLock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for first := true; ; first = false {
		f, err := lockFile(path, syscall.LOCK_EX)
		if !errors.Is(err, errLocked) {
			return f, err
		}
		if first {
			waiting()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", path, context.Cause(ctx))
		}
	}
}
