// Package demo shows the controller at work: a control plane, a recorded cluster
// on it, the controller beside it, and what it publishes.
//
//	plane ─▶ controller ─▶ load ─▶ published = recount? ─▶ Report ─▶ table or JSON ─▶ churn
//
// What is shown is read from the published ConfigMap. The recount only decides
// whether it may be shown.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/lab/load"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// Format is how the report is written.
type Format string

// The formats there are.
const (
	Table Format = "table"
	JSON  Format = "json"
)

// Options say what to show.
type Options struct {
	// Cluster is what is loaded.
	Cluster *load.Cluster
	// Once ends the demo after the report; else jobs come and go until ctx ends.
	Once   bool
	Format Format
	// HTTPAddress is the controller's; port 0 is any that is free.
	HTTPAddress string
	// Seed decides the jobs.
	Seed uint64
	// Stdout takes the report and the status line, Stderr everything on the way
	// there.
	Stdout, Stderr io.Writer
}

// Check finds what cannot work before anything is started.
func (o Options) Check() error {
	switch {
	case o.Format != Table && o.Format != JSON:
		return fmt.Errorf("-o %s: want %s or %s", o.Format, Table, JSON)
	case o.Format == JSON && !o.Once:
		return errors.New("-o json needs --once: without it the demo goes on with a status line, which is no JSON")
	}
	return controllerOptions(o.HTTPAddress).Validate()
}

// Run starts a control plane and shows the controller at work on it. Unless o.Once
// is set it ends with ctx, and that is no error once the report is out.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.Check(); err != nil {
		return err
	}
	want, err := recount(o.Cluster)
	if err != nil {
		return err
	}
	p, err := plane.Start(ctx, plane.Options{Progress: o.Stderr})
	if err != nil {
		return err
	}
	defer func() {
		fmt.Fprintln(o.Stderr, "stopping")
		if stopErr := p.Stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("stop the lab: %w", stopErr))
		}
	}()
	if err := p.Announce(); err != nil {
		return err
	}
	return on(ctx, p, o, want)
}

// recount is what a correct summary of the cluster says.
func recount(c *load.Cluster) (load.Totals, error) {
	placement, err := load.Place(c)
	if err != nil {
		return load.Totals{}, err
	}
	return load.Expect(c, placement), nil
}

// demo is one demo on a plane that runs.
type demo struct {
	Options
	plane  *plane.Plane
	client kubernetes.Interface
	// end ends the demo with the error of a part that runs beside it.
	end context.CancelCauseFunc
	// beside are those parts.
	beside sync.WaitGroup
}

// on runs the demo on a plane and returns when everything that it has started
// there has ended.
func on(parent context.Context, p *plane.Plane, o Options, want load.Totals) error {
	client, err := kubernetes.NewForConfig(quick(p.Config()))
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	// client-go would write into the table what the error at the end says better.
	// The controller has a log of its own.
	ctx, end := context.WithCancelCause(klog.NewContext(parent, klog.Logger{}))
	d := &demo{Options: o, plane: p, client: client, end: end}
	defer d.beside.Wait()
	defer end(nil)
	d.beside.Go(func() {
		select {
		case err := <-p.Failed():
			end(err)
		case <-ctx.Done():
		}
	})
	err = d.run(ctx, want)
	asked := parent.Err() != nil
	if asked || err == nil && ctx.Err() == nil {
		return err
	}
	return firstCause(ctx, err)
}

// firstCause returns why ctx ended if it ends in a moment, else err. A component
// that dies is noticed at about the time the first request to it fails, and says
// more about what is wrong.
func firstCause(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(2 * time.Second):
		return err
	}
}

func (d *demo) run(ctx context.Context, want load.Totals) error {
	controller, err := d.startController(ctx)
	if err != nil {
		return err
	}
	summary, err := d.follow(ctx)
	if err != nil {
		return err
	}
	d.say("loading %d nodes and %d pods: %s", len(d.Cluster.Nodes), len(d.Cluster.Pods), d.Cluster.Source)
	if _, err := load.Apply(ctx, d.plane.Config(), d.Cluster, load.Options{Progress: d.Stderr}); err != nil {
		return err
	}
	published, err := d.awaitRecount(ctx, summary, want)
	if err != nil {
		return fmt.Errorf("%w%s", err, controller.lastWords())
	}
	report, err := d.report(ctx, published)
	if err != nil {
		return err
	}
	if err := d.print(report, controller); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if d.Once {
		return nil
	}
	return d.churn(ctx, summary)
}

func (d *demo) print(r Report, c *controller) error {
	if d.Format == JSON {
		return WriteJSON(d.Stdout, r)
	}
	if err := WriteTable(d.Stdout, r, styled(d.Stdout)); err != nil {
		return err
	}
	if d.Once {
		return nil // nothing will be there to look at
	}
	return writeHints(d.Stdout, d.plane.Kubeconfig(), c)
}

// say writes a line about what is going on.
func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.Stderr, format+"\n", args...) }

// quick is config for clients that read thousands of objects.
func quick(config *rest.Config) *rest.Config {
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.UserAgent = "gpu-summary-lab/demo"
	return config
}
