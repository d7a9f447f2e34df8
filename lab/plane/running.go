package plane

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Running is a lab that announced itself, so that other commands find it
// without being told where it is.
type Running struct {
	Pid        int       `json:"pid"`
	Dir        string    `json:"dir"`
	Kubeconfig string    `json:"kubeconfig"`
	Started    time.Time `json:"started"`
	// Nodes are its real nodes.
	Nodes []RunningNode `json:"nodes,omitempty"`
}

// RunningNode is a real node of a running lab.
type RunningNode struct {
	Name string `json:"name"`
	// KubeletDir is its kubelet's directory, as seen from outside of the node.
	KubeletDir string `json:"kubeletDir"`
}

// Announce records the plane and its real nodes for FindRunning; Stop removes the record. Only
// planes for people announce themselves: a command must not pick up the plane
// of a test that happens to run.
func (p *Plane) Announce(nodes ...RunningNode) error {
	dir, err := runningDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("announce lab: %w", err)
	}
	r := Running{Pid: os.Getpid(), Dir: p.files.dir, Kubeconfig: p.Kubeconfig(), Started: time.Now(), Nodes: nodes}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("announce lab: %w", err)
	}
	path := filepath.Join(dir, fmt.Sprintf("%d.json", r.Pid))
	// Renamed into place, so that no reader sees half a record.
	if err := errors.Join(writeSecret(path+".tmp", data), os.Rename(path+".tmp", path)); err != nil {
		return fmt.Errorf("announce lab: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record = path
	return nil
}

// FindRunning returns the announced labs that are alive, the latest first, and
// removes the records of those that are not.
func FindRunning() ([]Running, error) {
	dir, err := runningDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for running labs: %w", err)
	}
	var found []Running
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		r, err := readRunning(path)
		if err != nil {
			return nil, err
		}
		if r == nil {
			_ = os.Remove(path)
			continue
		}
		found = append(found, *r)
	}
	slices.SortFunc(found, func(a, b Running) int { return b.Started.Compare(a.Started) })
	return found, nil
}

// readRunning returns nil when the lab of the record is gone: its state
// directory is, or the lock in it is free.
func readRunning(path string) (*Running, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // removed since the directory was read
	}
	if err != nil {
		return nil, fmt.Errorf("read record of a running lab: %w", err)
	}
	var r Running
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read record of a running lab %s: %w", path, err)
	}
	lock, err := os.Open(filepath.Join(r.Dir, lockName))
	if err != nil {
		return nil, nil
	}
	defer lock.Close()
	// Shared, so that two commands that look at the same time do not take each
	// other for the lab.
	if err := tryLock(lock, syscall.LOCK_SH); !errors.Is(err, errLocked) {
		return nil, err
	}
	return &r, nil
}

func runningDir() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "running"), nil
}
