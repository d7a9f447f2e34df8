package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stopTimeout is how long a process may take to end when it is asked to.
const stopTimeout = 10 * time.Second

// starter starts all processes from one thread that lives as long as they do: the kernel ends
// a child with the thread that started it, and Go may end any thread that is not held.
type starter struct {
	requests chan func()
}

func newStarter() *starter { return &starter{requests: make(chan func())} }

func (s *starter) run(ctx context.Context) {
	runtime.LockOSThread() // and never unlocked
	for {
		select {
		case start := <-s.requests:
			start()
		case <-ctx.Done():
			return
		}
	}
}

func (s *starter) start(ctx context.Context, cmd *exec.Cmd) error {
	result := make(chan error, 1)
	select {
	case s.requests <- func() { result <- cmd.Start() }:
		return <-result
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// process is a program that runs.
type process struct {
	name    string
	pid     int
	cmd     *exec.Cmd
	started time.Time
	stdin   io.WriteCloser
	stdout  io.Reader
	stderr  *tail
	ended   chan struct{}
}

// launch starts a program. Its output is for the caller to read.
func (r *runner) launch(ctx context.Context, name, path string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(path, args...), stderr: &tail{}, ended: make(chan struct{})}
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.Stderr = p.stderr
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	p.cmd.Stdout, p.stdout = write, read
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	p.started = time.Now()
	err = r.starter.start(ctx, p.cmd)
	write.Close()
	if err != nil {
		read.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.pid = p.cmd.Process.Pid
	r.wait.Go(func() {
		_ = p.cmd.Wait() // its state says how it ended
		read.Close()
		close(p.ended)
	})
	return p, nil
}

// stop asks the process to end and insists after a while.
func (p *process) stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Process.Signal(os.Interrupt)
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// lost is the error of a process that ended by itself.
func (p *process) lost() error {
	return fmt.Errorf("%s ended (%s); its last words:\n%s", p.name, p.cmd.ProcessState, p.stderr)
}

// cpu is the CPU time that the process has used, in seconds.
func (p *process) cpu() (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time of %s: %w", p.name, err)
	}
	// The name stands in brackets and may contain anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 11, 12 // counted from the state, which is the third field
	if len(fields) <= system {
		return 0, fmt.Errorf("read CPU time of %s: %q", p.name, stat)
	}
	u, errU := strconv.ParseFloat(fields[user], 64)
	s, errS := strconv.ParseFloat(fields[system], 64)
	return (u + s) / ticksPerSecond, errors.Join(errU, errS)
}

// ticksPerSecond is in what the kernel counts CPU time for user space, on every architecture.
const ticksPerSecond = 100

// memory returns a line of the process's status in bytes: VmHWM is the most it had.
func (p *process) memory(line string) (float64, error) {
	return memoryLine(fmt.Sprintf("/proc/%d/status", p.pid), line)
}

func memoryLine(file, line string) (float64, error) {
	status, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(l, line+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("%s has no line %s", file, line)
}

const (
	quietSample = 200 * time.Millisecond
	quietFor    = 5 // samples
	quietCPU    = 0.02
)

// quiet waits until the process has as good as stopped working and returns its CPU time.
func (p *process) quiet(ctx context.Context, within time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%s was still at work after %v", p.name, within))
	defer cancel()
	tick := time.NewTicker(quietSample)
	defer tick.Stop()
	var samples []float64
	for {
		cpu, err := p.cpu()
		if err != nil {
			return 0, err
		}
		samples = append(samples, cpu)
		if n := len(samples); n > quietFor && cpu-samples[n-1-quietFor] <= quietCPU {
			return cpu, nil
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return 0, p.lost()
		case <-ctx.Done():
			return cpu, context.Cause(ctx)
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > 2*tailBytes {
		t.text = append(t.text[:0], t.text[len(t.text)-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
