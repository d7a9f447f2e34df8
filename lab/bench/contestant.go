package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/rival"
)

// who is a contestant.
type who string

// The contestants, in the order of the tables.
const (
	controller   who = "controller"
	drain        who = "drain"
	textbook     who = "textbook"
	poll         who = "poll loop"
	bareUpdate   who = "bare update"
	stateMetrics who = "kube-state-metrics"
)

// pollEvery is the interval of the poll loop, the one of the document it is from.
const pollEvery = 5 * time.Second

// needs is about how much memory a contestant takes at most: whatever the size, and for each pod. It
// decides what is left out on a machine that is too small.
var needs = map[who]struct{ base, pod float64 }{
	controller:   {200 << 20, 1 << 10},
	drain:        {50 << 20, 0},
	textbook:     {200 << 20, 28 << 10},
	poll:         {200 << 20, 34 << 10},
	bareUpdate:   {100 << 20, 0},
	stateMetrics: {200 << 20, 36 << 10},
}

// WhoNames are the contestants.
func WhoNames() (names []string) {
	for w := range needs {
		names = append(names, string(w))
	}
	slices.Sort(names)
	return names
}

// fits reports why a contestant cannot run at that size, "" if it can.
func fits(w who, pods int) string {
	need := needs[w].base + needs[w].pod*float64(pods)
	free, err := memoryLine("/proc/meminfo", "MemAvailable")
	if err != nil || need < free*0.85 {
		return ""
	}
	return fmt.Sprintf("needs about %.0f GiB, %.0f GiB are free", need/(1<<30), free/(1<<30))
}

// entry is a contestant that runs.
type entry struct {
	*process
	who     who
	target  *target
	said    chan rival.Message // what a rival says
	address string             // URL of a program that serves metrics and profiles, once known
}

// enter starts a contestant against a target. more are flags of its own.
func (r *runner) enter(ctx context.Context, w who, t *target, more ...string) (*entry, error) {
	e := &entry{who: w, target: t}
	var err error
	switch w {
	case controller:
		args := append([]string{"--kubeconfig", t.kubeconfig, "--namespace", namespace, "--http-address", "127.0.0.1:0", "--profiling", "--cache-sync-timeout", coldTimeout.String()}, more...)
		if e.process, err = r.launch(ctx, string(w), r.Controller, args...); err == nil {
			go discard(e.stdout)
		}
	case stateMetrics:
		err = r.enterStateMetrics(ctx, e)
	default:
		name, args := "", []string{"--kubeconfig", t.kubeconfig, "--namespace", namespace, "--name", summaryName}
		switch w {
		case textbook:
			name = "textbook"
		case poll:
			name, args = "poll", append(args, "--every", pollEvery.String())
		case drain:
			name = "drain"
		case bareUpdate:
			name, args = "update", append(args, "--name", "bare-update")
		}
		args = slices.Concat(r.Self[1:], []string{"rival", name}, args, more)
		if e.process, err = r.launch(ctx, string(w), r.Self[0], args...); err == nil {
			e.said = make(chan rival.Message, 16)
			go e.listen()
		}
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

func discard(r io.Reader) { _, _ = io.Copy(io.Discard, r) }

func (r *runner) enterStateMetrics(ctx context.Context, e *entry) error {
	var ports [2]string
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("find a port: %w", err)
		}
		_, ports[i], _ = net.SplitHostPort(listener.Addr().String())
		listener.Close()
	}
	var err error
	e.process, err = r.launch(ctx, string(e.who), r.StateMetrics, "--kubeconfig", e.target.kubeconfig, "--resources", "pods,nodes",
		"--host", "127.0.0.1", "--port", ports[0], "--telemetry-host", "127.0.0.1", "--telemetry-port", ports[1])
	if err != nil {
		return err
	}
	e.address = "http://127.0.0.1:" + ports[1] // telemetry has the profiles, too
	go discard(e.stdout)
	return nil
}

// listen reads what a rival says until it ends.
func (e *entry) listen() {
	for lines := bufio.NewScanner(e.stdout); lines.Scan(); {
		var m rival.Message
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			e.said <- m
		}
	}
}

// hear waits for an event of a rival.
func (e *entry) hear(ctx context.Context, event string, timeout time.Duration) (rival.Message, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case m := <-e.said:
			if m.Event == event {
				return m, nil
			}
		case <-e.ended:
			return rival.Message{}, e.lost()
		case <-timer.C:
			return rival.Message{}, fmt.Errorf("%s was not %s after %v", e.name, event, timeout)
		case <-ctx.Done():
			return rival.Message{}, context.Cause(ctx)
		}
	}
}

// ready waits until the contestant has done what it is for, for the first time, and returns
// when that was: a right summary, or everything read where none is written.
func (e *entry) ready(ctx context.Context, timeout time.Duration) (time.Time, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-e.ended:
			cancel(e.lost())
		case <-ctx.Done():
		}
	}()
	switch e.who {
	case drain, bareUpdate:
		m, err := e.hear(ctx, "ready", timeout)
		return m.At, err
	case stateMetrics:
		return e.sent(ctx, timeout)
	}
	state, err := e.target.state(ctx, 0)
	if err != nil {
		return time.Time{}, err
	}
	if e.said != nil && state.Expected.Used == 0 {
		// Where no GPU is asked for, rivals have nothing to say.
		m, err := e.hear(ctx, "ready", timeout)
		return m.At, err
	}
	state, err = e.target.right(ctx, timeout)
	return state.Right, err
}

// sent waits until the server has sent all pods and nodes and the contestant has come to rest,
// and returns when the last was sent.
func (e *entry) sent(ctx context.Context, timeout time.Duration) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%s had not asked for everything after %v", e.name, timeout))
	defer cancel()
	tick := time.NewTicker(quietSample)
	defer tick.Stop()
	for {
		s, err := e.target.state(ctx, 0)
		if err != nil {
			return time.Time{}, err
		}
		pods, nodes := s.SentState["pods"], s.SentState["nodes"]
		if !pods.IsZero() && !nodes.IsZero() {
			_, err := e.quiet(ctx, timeout)
			if nodes.After(pods) {
				return nodes, err
			}
			return pods, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}
