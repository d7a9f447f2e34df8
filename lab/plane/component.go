package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// readyTimeout bounds every wait for a component; a loaded machine needs
	// some of it, an idle one a few seconds.
	readyTimeout = 2 * time.Minute
	// stopTimeout is how long a component may take to end after SIGTERM, and
	// killTimeout after SIGKILL, before that counts as a failure.
	stopTimeout = 20 * time.Second
	killTimeout = 10 * time.Second
)

// Component is one process of the plane. Its methods may be called by many
// goroutines; of Start, Stop and Restart one runs at a time.
type Component struct {
	name  string
	kind  string
	path  string
	args  []string
	env   []string
	dir   string
	log   string
	url   string
	probe func(context.Context) error
	// before prepares what this component needs each time it starts.
	before func(context.Context) error

	spawn func(*exec.Cmd) error
	// ended is told of an end nobody asked for.
	ended func(*ExitError)

	turn chan struct{} // held by the one of Start, Stop and Restart that runs

	starting atomic.Bool // start reports an end itself

	mu   sync.Mutex
	proc *process // nil before the first start
}

// process is one life of a component.
type process struct {
	cmd   *exec.Cmd
	asked atomic.Bool   // we stop it: its end is no failure
	done  chan struct{} // closed when it has ended and err is set
	err   error
	// told is set by whoever reports an end nobody asked for: start, to its
	// caller, or reap. Both may notice it in the same moment.
	told atomic.Bool
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Name returns the name, for instance "kube-apiserver".
func (c *Component) Name() string { return c.name }

// URL returns where the component serves.
func (c *Component) URL() string { return c.url }

// LogPath returns the file with all the component wrote, over all restarts.
func (c *Component) LogPath() string { return c.log }

// Pid returns the process id, 0 when the component does not run.
func (c *Component) Pid() int {
	if p := c.current(); p != nil && p.running() {
		return p.cmd.Process.Pid
	}
	return 0
}

// Start starts the component and waits until it is ready. Starting a running
// component only waits.
func (c *Component) Start(ctx context.Context) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	defer c.release()
	return c.start(ctx)
}

// Stop ends the component, paused or not: SIGTERM, then SIGKILL when it takes
// too long or ctx ends. It returns when the process is gone.
func (c *Component) Stop(ctx context.Context) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	defer c.release()
	return c.stop(ctx)
}

// Restart stops the component and starts it again with the same flags and
// ports.
func (c *Component) Restart(ctx context.Context) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	defer c.release()
	if err := c.stop(ctx); err != nil {
		return err
	}
	return c.start(ctx)
}

// Pause stops the process where it is (SIGSTOP): its connections stay open and
// nothing is answered, as when a machine hangs.
func (c *Component) Pause() error {
	if err := c.signal("pause", syscall.SIGSTOP); err != nil {
		return err
	}
	if err := untilStopped(c.Pid()); err != nil {
		return fmt.Errorf("pause %s: wait until it has stopped: %w", c.name, err)
	}
	return nil
}

// Resume lets a paused process go on.
func (c *Component) Resume() error { return c.signal("resume", syscall.SIGCONT) }

// Ready waits until the component answers that it is ready, at most two
// minutes. It returns at once when the process has ended.
func (c *Component) Ready(ctx context.Context) error {
	p := c.current()
	if p == nil {
		return fmt.Errorf("wait for %s: it was never started", c.name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout,
		fmt.Errorf("not ready within %s", readyTimeout))
	defer cancel()
	err := poll(ctx, p.done, c.probe)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errEnded):
		return c.exitError(p)
	default:
		return fmt.Errorf("wait for %s: %w%s", c.name, err, quoteTail(c.log))
	}
}

func (c *Component) start(ctx context.Context) error {
	if p := c.current(); p != nil && p.running() {
		return c.Ready(ctx)
	}
	if c.before != nil {
		if err := c.before(ctx); err != nil {
			return fmt.Errorf("prepare %s: %w", c.name, err)
		}
	}
	c.starting.Store(true)
	defer c.starting.Store(false)
	if err := c.launch(); err != nil {
		return err
	}
	if err := c.Ready(ctx); err != nil {
		if p := c.current(); !p.running() {
			p.told.Store(true)
		}
		return err
	}
	// It may have ended just after it was ready. Either reap sees the flag down
	// and reports that, or it is seen here.
	c.starting.Store(false)
	if p := c.current(); !p.running() {
		p.told.Store(true)
		return c.exitError(p)
	}
	return nil
}

// launch starts the process and returns at once.
func (c *Component) launch() error {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", c.name, err)
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(c.path, c.args...)
	cmd.Dir, cmd.Env = c.dir, append([]string(nil), c.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := c.spawn(cmd); err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	c.mu.Lock()
	c.proc = p
	c.mu.Unlock()
	go c.reap(p)
	return nil
}

// reap waits for the end of the process, which stop relies on.
func (c *Component) reap(p *process) {
	p.err = p.cmd.Wait()
	close(p.done)
	if !p.asked.Load() && !c.starting.Load() && p.told.CompareAndSwap(false, true) {
		c.ended(c.exitError(p))
	}
}

func (c *Component) stop(ctx context.Context) error {
	p := c.current()
	if p == nil || !p.running() {
		return nil
	}
	p.asked.Store(true)
	// SIGCONT as well: a paused process gets the SIGTERM only once it runs.
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop %s: %w", c.name, err)
		}
	}
	if c.endedWithin(ctx, p, stopTimeout) {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", c.name, err)
	}
	// Not ctx: it may have ended already, and a kill takes effect all the same.
	if !c.endedWithin(context.WithoutCancel(ctx), p, killTimeout) {
		return fmt.Errorf("stop %s: process %d still there %s after SIGKILL", c.name, p.cmd.Process.Pid, killTimeout)
	}
	return nil
}

func (c *Component) endedWithin(ctx context.Context, p *process, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return !p.running()
}

func (c *Component) signal(verb string, signal syscall.Signal) error {
	p := c.current()
	if p == nil || !p.running() {
		return fmt.Errorf("%s %s: it does not run", verb, c.name)
	}
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("%s %s: %w", verb, c.name, err)
	}
	return nil
}

func (c *Component) current() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proc
}

func (c *Component) take(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for another operation on %s: %w", c.name, context.Cause(ctx))
	}
}

func (c *Component) release() { <-c.turn }
