package keeper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	groupRoot = "/sys/fs/cgroup"
	// removeAttempts times removePause is how long the kernel may take to let go of a
	// group whose last process has ended.
	removeAttempts = 100
	removePause    = 50 * time.Millisecond
)

// groups is the node's control group: one directory, or with the older hierarchy one
// for each controller.
type groups struct{ name string }

func newGroups(name string) groups { return groups{name: name} }

// Unified reports whether the machine has the one hierarchy of cgroup v2.
func Unified() bool {
	var stat unix.Statfs_t
	return unix.Statfs(groupRoot, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC
}

// hierarchies are the directories that groups are made in.
func hierarchies() []string {
	if Unified() {
		return []string{groupRoot}
	}
	entries, err := os.ReadDir(groupRoot)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, entry := range entries {
		dir := filepath.Join(groupRoot, entry.Name())
		// Names of two controllers that share a hierarchy are links to one directory.
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil && entry.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Controllers returns the controllers that groups can be made with.
func Controllers() []string {
	if Unified() {
		return unifiedControllers(groupRoot)
	}
	entries, err := os.ReadDir(groupRoot)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if _, err := os.Stat(filepath.Join(groupRoot, entry.Name(), "cgroup.procs")); err == nil {
			names = append(names, entry.Name())
		}
	}
	return names
}

// unifiedControllers: those that groups have already, and those that they can be given.
// A group with processes in it gives none, unless it is the machine's real root, which
// has no type.
func unifiedControllers(root string) []string {
	names := fieldsOf(filepath.Join(root, "cgroup.subtree_control"))
	_, err := os.Stat(filepath.Join(root, "cgroup.type"))
	if isRoot := errors.Is(err, os.ErrNotExist); isRoot || len(fieldsOf(filepath.Join(root, "cgroup.procs"))) == 0 {
		names = append(names, fieldsOf(filepath.Join(root, "cgroup.controllers"))...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fieldsOf are the words in a file, none if it cannot be read.
func fieldsOf(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

func (g groups) make() error {
	if Unified() {
		// One by one: one that is refused must not keep the others away. The kubelet
		// names those that it misses.
		for _, controller := range Controllers() {
			_ = os.WriteFile(filepath.Join(groupRoot, "cgroup.subtree_control"), []byte("+"+controller), 0o600)
		}
	}
	for _, dir := range hierarchies() {
		group := filepath.Join(dir, g.name)
		if err := os.Mkdir(group, 0o755); err != nil {
			return fmt.Errorf("make the node's control group: %w", err)
		}
		// In the older hierarchy a group without processors and memory takes no process.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || Unified() {
				continue
			}
			if err := os.WriteFile(filepath.Join(group, file), text, 0o600); err != nil {
				return fmt.Errorf("furnish the node's control group: %w", err)
			}
		}
	}
	return nil
}

// remove removes the group and all in it, which must have no process any more.
func (g groups) remove() error {
	var errs []error
	for _, dir := range hierarchies() {
		errs = append(errs, removeGroup(filepath.Join(dir, g.name)))
	}
	return errors.Join(errs...)
}

// removeGroup removes the groups inside first. The files in a group go with it.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove control group: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := removeGroup(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	for attempt := 1; ; attempt++ {
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if attempt == removeAttempts || !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("remove control group %s: %w", dir, err)
		}
		time.Sleep(removePause)
	}
}

// abandonedGroups are the names of groups whose lab is gone.
func abandonedGroups() []string {
	var names []string
	for _, dir := range hierarchies() {
		found, err := filepath.Glob(filepath.Join(dir, Prefix+"*"))
		if err != nil {
			continue
		}
		for _, group := range found {
			if name := filepath.Base(group); abandoned(name) {
				names = append(names, name)
			}
		}
	}
	return names
}
