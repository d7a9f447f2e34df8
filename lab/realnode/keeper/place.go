// Package keeper gives a real node its place on this machine: namespaces for
// processes, mounts and network, and a control group.
//
// The keeper is a process that stays until it is told to end, or until the lab is
// gone. Then everything in the namespaces ends with their first process, whatever it
// is and whoever started it, and the mounts and the network with it. What the kernel
// leaves, control groups and files, the keeper removes, and what an earlier one that was
// killed itself has left, the next one.
package keeper

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Place is what the keeper makes.
type Place struct {
	// ID names control group and directory. NewID makes it.
	ID string
	// Dir has what the node sees at the paths in Seen. It is removed at the end.
	Dir string
	// Programs are bound to their names in /run/programs, wherever they are.
	Programs map[string]string
	// Bridge is the node's network device, Address its address, as 10.88.1.1/24.
	Bridge, Address string
	// Server is another address, as 10.87.0.1/32, at which something in the node stands
	// for what is outside.
	Server string
}

// seen is where the node has directories of its own: what kubelet, containerd and CNI
// plugins write goes there, and some of the paths cannot be configured.
var seen = map[string]string{"lib": "/var/lib", "log": "/var/log", "run": "/run"}

// Folder is where the node's /var/lib (lib), /var/log (log) or /run (run) is.
func (p Place) Folder(name string) string { return filepath.Join(p.Dir, name) }

// Hides reports whether a path of this machine is another one, or none, in the node.
func Hides(path string) bool {
	for _, hidden := range seen {
		if path == hidden || strings.HasPrefix(path, hidden+"/") {
			return true
		}
	}
	return false
}

// firstPid is the file that says that the place is ready, by its first process.
func (p Place) firstPid() string { return filepath.Join(p.Dir, "first.pid") }

// First returns the id of the first process in the place, once it is ready.
func (p Place) First() (int, error) {
	text, err := os.ReadFile(p.firstPid())
	if err != nil {
		return 0, fmt.Errorf("find the node's first process: %w", err)
	}
	return strconv.Atoi(string(text))
}

// Write writes the place to the file that the command is given.
func (p Place) Write() (path string, err error) {
	for name := range seen {
		if err := os.MkdirAll(p.Folder(name), 0o755); err != nil {
			return "", fmt.Errorf("make the node's directories: %w", err)
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("encode the node's place: %w", err)
	}
	path = filepath.Join(p.Dir, "place.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write the node's place: %w", err)
	}
	return path, nil
}

func read(path string) (Place, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Place{}, fmt.Errorf("read the node's place: %w", err)
	}
	var p Place
	if err := json.Unmarshal(text, &p); err != nil {
		return Place{}, fmt.Errorf("read the node's place %s: %w", path, err)
	}
	return p, nil
}
