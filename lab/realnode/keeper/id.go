package keeper

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
)

// Prefix begins the names of control groups and directories of real nodes.
const Prefix = "gpu-summary-node-"

var made atomic.Int32

// NewID returns a name that tells whether the lab it is from still lives: by its
// process id and, since these are used again, when that process started.
func NewID() (string, error) {
	pid := os.Getpid()
	started, err := startOf(pid)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s%d-%s-%d", Prefix, pid, started, made.Add(1)), nil
}

// abandoned reports whether the name is that of a node whose lab is gone.
func abandoned(name string) bool {
	rest, ok := strings.CutPrefix(name, Prefix)
	if !ok {
		return false
	}
	var pid, count int
	var started string
	fields := strings.ReplaceAll(rest, "-", " ")
	if n, err := fmt.Sscan(fields, &pid, &started, &count); err != nil || n != 3 {
		return false
	}
	now, err := startOf(pid)
	return err != nil || now != started
}

// startOf returns when the process started, in ticks since boot.
func startOf(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", fmt.Errorf("find out when process %d started: %w", pid, err)
	}
	// The command's name, in parentheses, may have anything in it. What follows is
	// the state, the third field; the start is the 22nd.
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("find out when process %d started: it has ended", pid)
	}
	return fields[19], nil
}
