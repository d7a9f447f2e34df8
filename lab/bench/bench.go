package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
	"github.com/gpu-summary/gpu-summary-controller/lab/progress"
)

// Options say what is measured.
type Options struct {
	// Self is the command, with its first arguments, that has the subcommands server and
	// rival.
	Self []string
	// Controller is the controller's binary. StateMetrics is that of kube-state-metrics, "" for
	// doing without.
	Controller, StateMetrics string
	// Scenarios are names of what Scenarios lists.
	Scenarios []string
	Sizes     []Size
	// Who are names of contestants to measure, all if empty.
	Who []string
	// Runs is how often everything is measured.
	Runs int
	// Quick makes each measurement as short as it can be and still mean something.
	Quick bool
	// TLS and Gzip are how the server serves where a scenario does not say it itself.
	TLS, Gzip bool
	// QuietFor is how long nothing happens in the scenario quiet.
	QuietFor time.Duration
	// Progress is told how far the measuring is.
	Progress io.Writer
}

// Size is a cluster: so many nodes and pods, of which five in a hundred ask for GPUs.
type Size struct{ Nodes, Pods int }

// gpuShare of the pods ask for GPUs: one in twenty.
const gpuShare = 20

// ParseSize reads "5k/150k" or "100k/1M": nodes and pods.
func ParseSize(text string) (Size, error) {
	nodes, pods, ok := strings.Cut(text, "/")
	n, errN := parseCount(nodes)
	p, errP := parseCount(pods)
	if !ok || errN != nil || errP != nil {
		return Size{}, fmt.Errorf("size %q: want nodes/pods, such as 5k/150k", text)
	}
	s := Size{n, p}
	return s, s.cluster().Check()
}

func parseCount(text string) (int, error) {
	factor := 1
	if digits, ok := strings.CutSuffix(text, "k"); ok {
		text, factor = digits, 1_000
	} else if digits, ok := strings.CutSuffix(text, "M"); ok {
		text, factor = digits, 1_000_000
	}
	var n int
	if _, err := fmt.Sscanf(text+" ", "%d ", &n); err != nil || fmt.Sprint(n) != text {
		return 0, errors.New("no number")
	}
	return n * factor, nil
}

func (s Size) String() string { return shortCount(s.Nodes) + "/" + shortCount(s.Pods) }

func shortCount(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1_000 && n%1_000 == 0:
		return fmt.Sprintf("%dk", n/1_000)
	}
	return fmt.Sprint(n)
}

// cluster is what the server makes of it: as many GPU nodes as the GPU pods fill, and
// a tenth more that are free, at least 64 if there are so many nodes.
func (s Size) cluster() server.Size {
	c := server.Size{Nodes: s.Nodes, Pods: s.Pods, GPUPods: s.Pods / gpuShare}
	used := (c.GPUPods + 3) / 4
	c.GPUNodes = min(s.Nodes, used+max(64, used/10))
	return c
}

// runner is one run of the benchmark.
type runner struct {
	Options
	starter *starter
	dir     string
	files   int
	wait    sync.WaitGroup // for processes
	report  *Report
	bar     *progress.Bar
}

// Run measures and returns what came out; with an error, what had come out until then.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("CPU time and memory of processes are read from /proc, which only Linux has")
	}
	var chosen []scenario
	for _, s := range scenarios {
		if slices.Contains(o.Scenarios, s.name) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) < len(o.Scenarios) {
		return nil, fmt.Errorf("scenarios %s: want some of %s", strings.Join(o.Scenarios, ", "), strings.Join(ScenarioNames(), ", "))
	}
	for _, w := range o.Who {
		if _, ok := needs[who(w)]; !ok {
			return nil, fmt.Errorf("contestant %q: want one of %s", w, strings.Join(WhoNames(), ", "))
		}
	}
	if _, err := os.Stat(o.Controller); err != nil {
		return nil, fmt.Errorf("find the controller: %w", err)
	}
	r := &runner{Options: o, starter: newStarter(), report: newReport(o)}
	if r.dir, err = os.MkdirTemp("", "gpu-summary-bench-"); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var starting sync.WaitGroup
	starting.Go(func() { r.starter.run(ctx) })
	defer func() {
		r.wait.Wait()
		cancel()
		starting.Wait()
		err = errors.Join(err, os.RemoveAll(r.dir))
	}()
	for _, s := range chosen {
		if err := s.run(ctx, r, s.name); err != nil {
			r.report.finish()
			return r.report, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	r.report.finish()
	return r.report, nil
}

// scenario is something that is measured.
type scenario struct {
	name, about string
	run         func(ctx context.Context, r *runner, name string) error
	// extra scenarios are not run unless named.
	extra bool
}

// ScenarioNames are all there are, in the order in which they are run.
func ScenarioNames() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// DefaultScenarios are those that are run when none is named.
func DefaultScenarios() (names []string) {
	for _, s := range scenarios {
		if !s.extra {
			names = append(names, s.name)
		}
	}
	return names
}

// DescribeScenarios is a line for each.
func DescribeScenarios() string {
	var b strings.Builder
	for _, s := range scenarios {
		fmt.Fprintf(&b, "  %-12s %s\n", s.name, s.about)
	}
	return b.String()
}

// mode is how the server serves unless a scenario is about just that.
func (r *runner) mode() mode { return mode{tls: r.TLS, gzip: r.Gzip} }

// takesPart is whether a contestant is wanted, and there.
func (r *runner) takesPart(w who) bool {
	if w == stateMetrics && r.StateMetrics == "" {
		return false
	}
	return len(r.Who) == 0 || slices.Contains(r.Who, string(w))
}

// pick chooses between what a full and a quick measurement take.
func pick[T any](r *runner, full, quick T) T {
	if r.Quick {
		return quick
	}
	return full
}

// step is one measurement of one contestant.
type step struct {
	key
	do func(ctx context.Context) (metrics, error)
}

// take takes all measurements in turns, so that what changes on the machine meanwhile is the
// same to all. A contestant for which there is not enough memory is left out.
func (r *runner) take(ctx context.Context, what string, steps []step) error {
	steps = slices.DeleteFunc(steps, func(s step) bool { return !r.takesPart(s.Who) })
	r.bar = progress.New(r.Progress, r.Runs*len(steps), what)
	defer r.bar.Done()
	for range r.Runs {
		for _, s := range steps {
			if why := fits(s.Who, s.pods); why != "" {
				r.report.skip(s.key, why)
				r.bar.Add(1)
				continue
			}
			load := loadAverage()
			m, err := s.do(ctx)
			if err != nil {
				return fmt.Errorf("measure %s at %s: %w", s.Who, cmp.Or(s.Size, "its size"), err)
			}
			r.report.add(s.key, load, m)
			r.bar.Add(1)
		}
	}
	return nil
}
