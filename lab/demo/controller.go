package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/gpu-summary/gpu-summary-controller/deploy/manifests"
	"github.com/gpu-summary/gpu-summary-controller/internal/run"
	"github.com/gpu-summary/gpu-summary-controller/lab/kube"
)

// target is the ConfigMap that is published, as the manifests have it.
var target = types.NamespacedName{Namespace: "gpu-summary", Name: "gpu-summary"}

// identity and groups are those of the service account in the manifests: the demo
// would not show much if the controller were the administrator.
var (
	identity = "system:serviceaccount:gpu-summary:gpu-summary-controller"
	groups   = []string{"system:serviceaccounts", "system:serviceaccounts:gpu-summary", "system:authenticated"}
)

// verbosity is what -v would be: a line for each write, with what changed.
const verbosity = 2

// controller is the controller, which runs in this process.
type controller struct {
	url string
	log string // file
}

func controllerOptions(httpAddress string) *run.Options {
	o := run.DefaultOptions()
	o.Namespace, o.Name = target.Namespace, target.Name
	o.HTTPAddress = httpAddress
	return o
}

// startController gives the controller its namespace and its rights, and starts it.
// Should it end before ctx, the demo ends with its error.
func (d *demo) startController(ctx context.Context) (*controller, error) {
	if err := d.applyManifests(ctx); err != nil {
		return nil, err
	}
	config, err := d.plane.ConfigFor(identity, groups...)
	if err != nil {
		return nil, err
	}
	c := &controller{log: filepath.Join(d.plane.Dir(), "logs", "gpu-summary-controller.log")}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, fmt.Errorf("make the controller's log: %w", err)
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(verbosity), textlogger.Output(log)))
	serving := make(chan string, 1)
	options := controllerOptions(d.HTTPAddress)
	options.Serving = func(address string) { serving <- address }
	d.beside.Go(func() {
		defer log.Close()
		err := run.Control(klog.NewContext(ctx, logger), config, options)
		if err == nil {
			err = errors.New("it ended by itself")
		}
		d.end(fmt.Errorf("run the controller: %w", err)) // without effect if ctx has ended
	})
	// Needs no bound of its own: the controller listens before it asks the network
	// for anything, or it ends, and ctx with it.
	select {
	case address := <-serving:
		c.url = "http://" + address
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	d.say("gpu-summary-controller serves on %s as %s", c.url, identity)
	return c, nil
}

func (d *demo) applyManifests(ctx context.Context) error {
	names, err := fs.Glob(manifests.FS, "*.yaml") // sorted, which is the order to apply
	if err != nil {
		return fmt.Errorf("find the manifests: %w", err)
	}
	for _, name := range names {
		text, err := manifests.FS.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		if err := kube.Apply(ctx, d.plane.Config(), text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// lastWords are the last lines of the log, for an error that is shown when the log
// itself is gone.
func (c *controller) lastWords() string {
	text, err := os.ReadFile(c.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err != nil || lines[0] == "" {
		return ""
	}
	return "\nlast lines of the controller's log:\n  " + strings.Join(lines[max(0, len(lines)-5):], "\n  ")
}
