package integration

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// TestANodeIsOvercommittedAndRecovers, as whoever runs kubectl describe sees it.
func TestANodeIsOvercommittedAndRecovers(t *testing.T) {
	e := newEnv(t)
	node := e.namespace + "-gpu"
	e.node(node, 8)
	e.bound("a", node, 6)
	c := e.start(func(_ *rest.Config, o *run.Options) { o.EventDelay = 300 * time.Millisecond })
	e.shows(node + "=6")
	about := e.aboutConfigMap()
	e.told(about, "PublishingStarted")
	e.allocatable(node, 5)
	event := e.told(aboutNode(node), "GPUsOvercommitted")
	if event.Type != corev1.EventTypeWarning || !strings.Contains(event.Message, "6 of nvidia.com/gpu requested, 5 of 8 healthy") {
		t.Errorf("it is %s: %s", event.Type, event.Message)
	}
	e.total(publish.AnnotationOvercommitted, "1")
	e.allocatable(node, 8)
	e.told(aboutNode(node), "GPUsOvercommitted", "GPUsRecovered")
	e.told(about, "PublishingStarted")

	// The one who comes next repeats nothing.
	c.stop()
	e.start(func(_ *rest.Config, o *run.Options) { o.EventDelay = 300 * time.Millisecond })
	e.told(about, "PublishingStarted", "PublishingStarted")
	e.told(aboutNode(node), "GPUsOvercommitted", "GPUsRecovered")
}

// TestNoEventsIfNotAskedFor: --events=false is for whoever does not want them.
func TestNoEventsIfNotAskedFor(t *testing.T) {
	e := newEnv(t)
	node := e.namespace + "-gpu"
	e.node(node, 8)
	e.bound("a", node, 6)
	c := e.start(func(_ *rest.Config, o *run.Options) { o.Events, o.EventDelay = false, 0 })
	e.shows(node + "=6")
	e.allocatable(node, 5)
	e.total(publish.AnnotationOvercommitted, "1")
	c.quiet()
	e.told(e.aboutConfigMap())
	e.told(aboutNode(node))
}

// TestWithoutEventsAllElseGoesOn: the numbers are right, the exit status is 0, and
// the log has one line for each namespace.
func TestWithoutEventsAllElseGoesOn(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(t)
	node := e.namespace + "-gpu"
	e.node(node, 8)
	e.bound("a", node, 6)
	ctx, cancel := context.WithCancel(t.Context())
	stderr := &lines{}
	cmd := exec.CommandContext(ctx, path, "--kubeconfig", e.user(e.rules("events/create")), "--http-address=127.0.0.1:0", "--event-delay=100ms", "--settle=100ms")
	cmd.Stderr = stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	e.must(cmd.Start())
	e.shows(node + "=6")
	for range 3 {
		e.allocatable(node, 5)
		e.total(publish.AnnotationOvercommitted, "1")
		e.eventually("both lines", func() error {
			if got := stderr.String(); strings.Count(got, "Events cannot be written") != 2 {
				return errors.New(got)
			}
			return nil
		})
		e.allocatable(node, 8)
		e.total(publish.AnnotationOvercommitted, "0")
	}
	cancel()
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("SIGINT: %v", err)
	}
	if got := stderr.String(); strings.Count(got, "Events cannot be written") != 2 || strings.Contains(got, "\nE") {
		t.Errorf("logged was\n%s", got)
	}
	e.told(e.aboutConfigMap())
	e.told(aboutNode(node))
}
