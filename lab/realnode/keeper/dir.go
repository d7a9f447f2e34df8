package keeper

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	// shortDir is where the node's directory is when the lab's is too long a name.
	shortDir = "/tmp"
	// longestDir leaves room, of the 107 bytes that the name of a Unix socket may have,
	// for lib/kubelet/plugins/a-long-name.gpus.example.com/dra.sock.
	longestDir = 45
)

// NewDir makes a directory for the node, by this name in the lab's if its sockets have
// room there and the node can see it at the same path.
func NewDir(lab, name, id string) (string, error) {
	lab, err := filepath.EvalSymlinks(lab)
	if err != nil {
		return "", fmt.Errorf("make the node's directory: %w", err)
	}
	dir := filepath.Join(lab, name)
	if len(dir) > longestDir || Hides(dir) {
		dir = filepath.Join(shortDir, id)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the node's directory: %w", err)
	}
	return dir, nil
}
