package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/gpudriver"
	"github.com/gpu-summary/gpu-summary-controller/lab/install"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
	"github.com/gpu-summary/gpu-summary-controller/lab/realnode"
)

const (
	// devices is how many GPUs the real node has.
	devices = 8
	// program is the image of testprogram.
	program = "docker.io/local/e2e:v1"
	// repository and the tags of the controller's image; the older one is made of the
	// same sources as the version of an earlier release.
	repository = "gpu-summary/gpu-summary-controller"
	tag        = "v0.0.2-e2e"
	olderTag   = "v0.0.1-e2e"

	// setUpTimeout is for a first build, of helm, kubectl and two images.
	setUpTimeout = 15 * time.Minute
)

// lab is what all tests share. Nothing in it changes after the start.
var lab struct {
	plane  *plane.Plane
	node   *realnode.Node
	driver *gpudriver.Driver
	client kubernetes.Interface
	tools  install.Tools
	dir    string   // of tools and images
	images []string // archives with the controller's
}

func TestMain(m *testing.M) {
	if realnode.Check() != nil {
		os.Exit(m.Run()) // tests skip by name
	}
	options := plane.Options{
		RealNode: true,
		Audit:    true, // says who wrote when
		ExtraFlags: map[string][]string{
			// A node that does not answer is noticed while a test waits. There are few nodes,
			// all of which tell that they live every ten seconds.
			plane.ControllerManager: {"--node-monitor-grace-period=40s"},
			plane.KWOK:              {"--node-lease-duration-seconds=40"},
		},
	}
	os.Exit(plane.Main(onNode{m}, options, func(p *plane.Plane) { lab.plane = p }))
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
	var building sync.WaitGroup
	building.Go(func() { buildErr = build(ctx) })
	defer building.Wait()

	if lab.node, err = startNode(ctx); err != nil {
		return stop, err
	}
	stops = append(stops, lab.node.Stop)
	var ended func() error
	if lab.driver, ended, err = startDriver(lab.node, devices); err != nil {
		return stop, err
	}
	stops = append(stops, ended)
	building.Wait()
	if buildErr != nil {
		return stop, buildErr
	}
	if err := loadImages(ctx, lab.node); err != nil {
		return stop, err
	}
	step("images are loaded")
	return stop, nil
}

func startNode(ctx context.Context) (*realnode.Node, error) {
	node, err := realnode.Start(ctx, realnode.Options{
		Plane: lab.plane, Progress: os.Stderr,
		// A kubelet that looks after its pods often mounts new tokens soon.
		KubeletConfig: map[string]any{"syncFrequency": "5s", "nodeStatusUpdateFrequency": "3s"},
	})
	if err == nil {
		step("node %s is ready", node.Name())
	}
	return node, err
}

// loadImages loads the controller's and the test program's.
func loadImages(ctx context.Context, node *realnode.Node) error {
	for _, archive := range lab.images {
		if err := node.LoadImage(ctx, archive); err != nil {
			return err
		}
	}
	return node.LoadProgram(ctx, program, filepath.Join(lab.dir, "testprogram"))
}

// startDriver gives a node its GPUs.
func startDriver(node *realnode.Node, gpus int) (driver *gpudriver.Driver, stop func() error, err error) {
	root := filepath.Dir(filepath.Dir(node.KubeletDir()))
	driver, err = gpudriver.New(gpudriver.Options{
		Node: node.Name(), KubeletDir: node.KubeletDir(), Client: lab.client,
		CDIDir:    filepath.Join(root, "run", "cdi"), // the node's /var/run is its /run
		Resources: []gpudriver.Resource{{Name: "nvidia.com/gpu", Count: gpus}},
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- driver.Run(ctx) }()
	return driver, func() error { cancel(); return <-ended }, nil
}

// needNode skips the test where there can be no node.
func needNode(t *testing.T) {
	t.Helper()
	if lacks := realnode.Missing(); len(lacks) > 0 {
		t.Skipf("a real node needs what this machine lacks:\n%s", strings.Join(lacks, "\n"))
	}
}
