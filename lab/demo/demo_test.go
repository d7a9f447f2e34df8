package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/load"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

var lab *plane.Plane

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		os.Exit(m.Run())
	}
	os.Exit(plane.Main(m, plane.Options{}, func(p *plane.Plane) { lab = p }))
}

// small is a cluster that shows each kind of number in a moment.
func small() *load.Cluster {
	pod := func(name string, gpus int64, phase corev1.PodPhase) load.Pod {
		return load.Pod{Name: name, CPUMilli: 100, MemoryMiB: 64, GPUs: gpus, Phase: phase}
	}
	return &load.Cluster{
		Source: "a test",
		Nodes: []load.Node{
			{Name: "big", CPUMilli: 64000, MemoryMiB: 65536, GPUs: 8, Model: "A100"},
			{Name: "cpu", CPUMilli: 64000, MemoryMiB: 65536},
			{Name: "huge", CPUMilli: 64000, MemoryMiB: 65536, GPUs: 64, Model: "H100"},
		},
		Pods: []load.Pod{
			pod("running", 6, corev1.PodRunning), pod("done", 4, corev1.PodSucceeded), pod("failed", 2, corev1.PodFailed),
			pod("waiting", 5, corev1.PodPending), pod("no-gpu", 0, corev1.PodRunning),
		},
	}
}

func options() Options {
	return Options{Cluster: small(), Format: Table, HTTPAddress: "127.0.0.1:0", Seed: 1}
}

// onLab runs the demo on the lab.
func onLab(ctx context.Context, t *testing.T, o Options) error {
	t.Helper()
	want, err := recount(o.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	return on(ctx, lab, o, want)
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"-o yaml: want table or json": func(o *Options) { o.Format = "yaml" },
		"-o json needs --once":        func(o *Options) { o.Format = JSON },
		"--http-address=8080":         func(o *Options) { o.HTTPAddress = "8080" },
	} {
		o := options()
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %q in it", err, want)
		}
	}
	if err := options().Check(); err != nil {
		t.Error(err)
	}
}

// TestDemo is the demo on a real control plane: once, and then with jobs.
func TestDemo(t *testing.T) {
	if lab == nil {
		t.Skip("needs a control plane: not with -short")
	}
	t.Run("once", testOnce)
	t.Run("churn", testChurn)
	t.Run("a controller that cannot start", func(t *testing.T) {
		o := options()
		o.HTTPAddress = "127.0.0.1:99999"
		o.Stdout, o.Stderr = &screen{}, &screen{}
		if err := onLab(t.Context(), t, o); err == nil || !strings.HasPrefix(err.Error(), "run the controller: listen on --http-address 127.0.0.1:99999: ") {
			t.Errorf("got %v", err)
		}
	})
}

func testOnce(t *testing.T) {
	stdout, stderr := &screen{}, &screen{}
	o := options()
	o.Once, o.Format, o.Stdout, o.Stderr = true, JSON, stdout, stderr
	if err := onLab(t.Context(), t, o); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var got struct {
		Requested, Allocatable, Free, Pending, Naive int64
		Nodes                                        map[string]int64
	}
	dec := json.NewDecoder(strings.NewReader(stdout.String()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	if got.Requested != 6 || got.Allocatable != 72 || got.Free != 66 || got.Pending != 5 || got.Naive != 17 ||
		!maps.Equal(got.Nodes, map[string]int64{"big": 6, "huge": 0}) {
		t.Errorf("got %+v", got)
	}
}

// jobRuns is a status line with a job that runs.
var jobRuns = regexp.MustCompile(`jobs running [1-9]`)

// testChurn waits for a job that runs, then ends the demo as Ctrl-C does.
func testChurn(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	stdout, stderr := &screen{}, &screen{}
	o := options()
	o.Stdout, o.Stderr = stdout, stderr
	ended := make(chan error, 1)
	go func() { ended <- onLab(ctx, t, o) }()
	deadline := time.After(90 * time.Second)
	for !jobRuns.MatchString(stdout.String()) {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v\n%s", err, stderr)
		case <-deadline:
			t.Fatalf("waited for a job to run:\n%s", stdout)
		case <-time.After(100 * time.Millisecond):
		}
	}
	interrupt(errors.New("Ctrl-C"))
	if err := <-ended; err != nil {
		t.Errorf("an interrupt gives %v", err)
	}
	for _, want := range []string{"requested            6     naive sum over all pods: 17 (+11, +183 %)", "  kubectl get configmap -n gpu-summary gpu-summary -o yaml\n"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// screen is a writer that may be read meanwhile.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
