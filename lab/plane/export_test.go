package plane

import (
	"context"
	"fmt"
	"os/exec"
)

// SpawnForTest starts the command as components are started, and leaves the
// spawner alone from then on.
func SpawnForTest(cmd *exec.Cmd) (pid int, err error) {
	s, err := startSpawner()
	if err != nil {
		return 0, err
	}
	if err := s.start(cmd); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// AddWithPortTaken adds an apiserver whose port someone else turns out to have
// the first time.
func (p *Plane) AddWithPortTaken(ctx context.Context, name string, taken int) error {
	flags := []string{fmt.Sprintf("--secure-port=%d", taken)}
	return p.add(ctx, name, func() (*Component, error) {
		defer func() { flags = nil }()
		return p.newAPIServer(name, flags)
	})
}
