package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
	"github.com/gpu-summary/gpu-summary-controller/lab/gpudriver"
	"github.com/gpu-summary/gpu-summary-controller/lab/install"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
	"github.com/gpu-summary/gpu-summary-controller/lab/realnode"
	"github.com/gpu-summary/gpu-summary-controller/lab/release"
)

const (
	// devices is how many GPUs the real node has.
	devices = 8
	// program is the image of testprogram.
	program = "docker.io/local/e2e:v1"
	// repository and the tags of the controller's image; the older one is the same
	// binary under the version of an earlier release.
	repository = "gpu-summary/gpu-summary-controller"
	tag        = "v0.0.2-e2e"
	olderTag   = "v0.0.1-e2e"

	setUpTimeout = 10 * time.Minute
)

// lab is what all tests share. Nothing in it changes after the start.
var lab struct {
	plane  *plane.Plane
	node   *realnode.Node
	driver *gpudriver.Driver
	client kubernetes.Interface
	tools  install.Tools
	dir    string // of tools and images
}

func TestMain(m *testing.M) {
	if realnode.Check() != nil {
		os.Exit(m.Run()) // tests skip by name
	}
	// The audit log says who wrote when.
	os.Exit(plane.Main(onNode{m}, plane.Options{RealNode: true, Audit: true}, func(p *plane.Plane) { lab.plane = p }))
}

type onNode struct{ m *testing.M }

// Run starts everything else, runs the tests and stops it.
func (o onNode) Run() int {
	ctx, cancel := context.WithTimeout(context.Background(), setUpTimeout)
	defer cancel()
	stop, err := setUp(ctx)
	code := 1
	if err != nil {
		fmt.Fprintf(os.Stderr, "set up: %v\n", err)
	} else {
		code = o.m.Run()
	}
	if err := stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stop: %v\n", err)
		return max(code, 1)
	}
	return code
}

// step tells people how far it is.
func step(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// setUp starts the node while tools and images are built. stop undoes what was done,
// also after an error.
func setUp(ctx context.Context) (stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var errs []error
		for i := len(stops) - 1; i >= 0; i-- {
			errs = append(errs, stops[i]())
		}
		return errors.Join(errs...)
	}
	if lab.client, err = kubernetes.NewForConfig(lab.plane.Config()); err != nil {
		return stop, err
	}
	// In the plane's directory, which is removed after a kill as well.
	if lab.dir = filepath.Join(lab.plane.Dir(), "e2e"); os.Mkdir(lab.dir, 0o700) != nil {
		return stop, fmt.Errorf("make directory %s", lab.dir)
	}
	var buildErr error
	var archives []string
	var building sync.WaitGroup
	building.Go(func() { archives, buildErr = build(ctx) })
	defer building.Wait()

	lab.node, err = realnode.Start(ctx, realnode.Options{
		Plane: lab.plane, Progress: os.Stderr,
		// A kubelet that looks after its pods often mounts new tokens soon.
		KubeletConfig: map[string]any{"syncFrequency": "5s", "nodeStatusUpdateFrequency": "3s"},
	})
	if err != nil {
		return stop, err
	}
	stops = append(stops, lab.node.Stop)
	step("node %s is ready", lab.node.Name())
	ended, err := startDriver()
	if err != nil {
		return stop, err
	}
	stops = append(stops, ended)
	building.Wait()
	if buildErr != nil {
		return stop, buildErr
	}
	for _, archive := range archives {
		if err := lab.node.LoadImage(ctx, archive); err != nil {
			return stop, err
		}
	}
	if err := lab.node.LoadProgram(ctx, program, filepath.Join(lab.dir, "testprogram")); err != nil {
		return stop, err
	}
	step("images are loaded")
	return stop, nil
}

// startDriver gives the node its GPUs.
func startDriver() (stop func() error, err error) {
	root := filepath.Dir(filepath.Dir(lab.node.KubeletDir()))
	lab.driver, err = gpudriver.New(gpudriver.Options{
		Node: lab.node.Name(), KubeletDir: lab.node.KubeletDir(), Client: lab.client,
		CDIDir:    filepath.Join(root, "run", "cdi"), // the node's /var/run is its /run
		Resources: []gpudriver.Resource{{Name: "nvidia.com/gpu", Count: devices}},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- lab.driver.Run(ctx) }()
	return func() error { cancel(); return <-ended }, nil
}

// build builds helm, kubectl, the controller's image under two versions and the test
// program, and returns the images' archives. It is what "make image" does, for this
// machine's processor alone.
func build(ctx context.Context) (archives []string, err error) {
	module, err := compile.Module()
	if err != nil {
		return nil, err
	}
	if lab.tools, err = install.Build(ctx, lab.dir); err != nil {
		return nil, err
	}
	step("helm and kubectl are built")
	cmd := compile.Go(ctx, module, "build", "-ldflags=-s -w", "-o", filepath.Join(lab.dir, "testprogram"), "./e2e/testprogram")
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build test program: %w\n%s", err, out)
	}
	source := release.Source{Root: filepath.Dir(module), Version: tag, Time: time.Unix(0, 0)}
	binaries, err := source.Binaries(ctx, release.Controller, []release.Platform{{OS: "linux", Arch: runtime.GOARCH}}, lab.dir)
	if err != nil {
		return nil, err
	}
	for _, version := range []string{tag, olderTag} {
		source.Version = version
		layout, archive := filepath.Join(lab.dir, "image-"+version), filepath.Join(lab.dir, version+".tar")
		if _, err := source.Image(binaries, layout); err != nil {
			return nil, err
		}
		if err := release.Tar(layout, archive); err != nil {
			return nil, err
		}
		archives = append(archives, archive)
	}
	step("images are built")
	return archives, nil
}

// needNode skips the test where there can be no node.
func needNode(t *testing.T) {
	t.Helper()
	if lacks := realnode.Missing(); len(lacks) > 0 {
		t.Skipf("a real node needs what this machine lacks:\n%s", strings.Join(lacks, "\n"))
	}
}
