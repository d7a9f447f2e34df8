package plane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	tempPrefix = "gpu-summary-lab-"
	lockName   = "lock"
	// unclaimedAge is when a directory without a lock counts as left over by
	// someone killed between making the two.
	unclaimedAge = time.Hour
)

// stateDir is a directory of this process: it holds the lock in it as long as
// it lives.
type stateDir struct {
	path    string
	lock    *os.File
	created bool // remove the directory itself as well, not only what is in it
}

// claim makes or takes over the state directory; "" is a temporary one.
func claim(dir string) (*stateDir, error) {
	if dir == "" {
		dir, err := os.MkdirTemp("", tempPrefix)
		if err != nil {
			return nil, fmt.Errorf("make state directory: %w", err)
		}
		return lockNew(dir, true)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find state directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make state directory: %w", err)
		}
		return lockNew(dir, true)
	case err != nil:
		return nil, fmt.Errorf("read state directory: %w", err)
	case len(entries) == 0:
		return lockNew(dir, false)
	}
	return takeOver(dir)
}

// lockNew puts a lock into an empty directory. The lock is taken before it
// gets its name, so that no sweeper ever sees it free while we live.
func lockNew(dir string, created bool) (*stateDir, error) {
	lock, err := os.CreateTemp(dir, "."+lockName)
	if err != nil {
		return nil, fmt.Errorf("make lock: %w", err)
	}
	if err := tryLock(lock, syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	// Link, unlike Rename, fails when another lab was quicker.
	if err := os.Link(lock.Name(), filepath.Join(dir, lockName)); err != nil {
		return nil, errors.Join(fmt.Errorf("claim %s: %w", dir, err), os.Remove(lock.Name()), lock.Close())
	}
	if err := os.Remove(lock.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("make lock: %w", err), lock.Close())
	}
	return &stateDir{path: dir, lock: lock, created: created}, nil
}

// takeOver empties a directory that a killed lab has left. Anything else in it
// is not ours to delete.
func takeOver(dir string) (*stateDir, error) {
	if _, err := os.Stat(filepath.Join(dir, lockName)); err != nil {
		return nil, fmt.Errorf("use %s as state directory: it is not empty", dir)
	}
	lock, err := lockFile(filepath.Join(dir, lockName), syscall.LOCK_EX)
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("use %s as state directory: another lab runs in it", dir)
	}
	if err != nil {
		return nil, err
	}
	s := &stateDir{path: dir, lock: lock}
	if err := s.empty(lockName); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// remove removes what is in the directory, and the directory if it was made
// for this lab, then lets go of the lock.
func (s *stateDir) remove() error {
	err := s.empty("")
	if s.created {
		err = errors.Join(err, os.RemoveAll(s.path))
	}
	return errors.Join(err, s.lock.Close())
}

func (s *stateDir) empty(except string) error {
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return fmt.Errorf("empty state directory: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == except {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.path, entry.Name())); err != nil {
			return fmt.Errorf("empty state directory: %w", err)
		}
	}
	return nil
}

// sweep removes the temporary state directories of labs that are gone. It
// does what it can: a leftover directory is no reason not to start.
func sweep() {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), tempPrefix) {
			sweepOne(filepath.Join(os.TempDir(), entry.Name()))
		}
	}
}

func sweepOne(dir string) {
	info, err := os.Lstat(dir)
	if err != nil {
		return
	}
	// Another user's directory in a shared /tmp is not ours, even for root.
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
		return
	}
	lock, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) && time.Since(info.ModTime()) > unclaimedAge {
			_ = os.RemoveAll(dir)
		}
		return
	}
	defer lock.Close()
	if tryLock(lock, syscall.LOCK_EX) == nil {
		_ = os.RemoveAll(dir)
	}
}
