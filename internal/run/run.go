package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
	"github.com/gpu-summary/gpu-summary-controller/internal/preflight"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/queue"
	"github.com/gpu-summary/gpu-summary-controller/internal/reconcile"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
	pipelinepage "github.com/gpu-summary/gpu-summary-controller/internal/serve/pipeline"
	"github.com/gpu-summary/gpu-summary-controller/internal/version"
	"github.com/gpu-summary/gpu-summary-controller/internal/watch"
)

// Run finds the cluster and runs the controller until ctx ends.
func Run(ctx context.Context, o *Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	c, err := findCluster(o)
	if err != nil {
		return err
	}
	if o.Namespace == "" {
		o.Namespace = c.namespace
	}
	o.LeaderElect = Choice{decided: true, yes: o.LeaderElect.or(c.inside)}
	klog.FromContext(ctx).Info("Starting gpu-summary-controller", "version", version.String(), "go", runtime.Version())
	klog.FromContext(ctx).Info("Using cluster", "server", c.config.Host, "found", c.source())
	return Control(ctx, c.config, o)
}

// Control runs all stages against one API server until ctx ends or one of them
// fails, and returns when every goroutine has. o.Namespace must be set.
func Control(ctx context.Context, config *rest.Config, o *Options) error {
	show := newSurfaces()
	tuned := tune(config, o)
	tuned.Wrap(show.recorder.CountBytes)
	tuned.Wrap(show.pulse.Wrap)
	tuned.Wrap(show.trouble.Wrap)
	client, err := kubernetes.NewForConfig(tuned)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	q := queue.New(clock.RealClock{})
	// The worker shuts the queue down too; this is for the ways out before it.
	defer q.ShutDown()
	informers, err := o.informers(ctx, client, queue.Enqueuer{Queue: q})
	if err != nil {
		return err
	}
	turn, err := newLeadership(ctx, tuned, o, informers)
	if err != nil {
		return err
	}
	show.leading = turn.leading
	show.attach(informers)
	inside := newInside(informers, q, turn, show, o)
	handlers, layout := show.handlers(o)
	maps.Copy(handlers, pipelinepage.Handlers(layout, inside.numbers))
	serving := serve.Options{
		Address: o.HTTPAddress, Ready: conditions(informers), Profiling: o.Profiling, Handlers: handlers,
		Metrics: append(show.metrics(o), pipelinepage.NewCollector(inside.numbers)),
		Live: func() map[string]error {
			return map[string]error{"pass": show.pass.Check(), "lease": turn.health(o)}
		},
	}
	if err := o.guard(ctx, tuned, &serving); err != nil {
		return err
	}
	server, err := serve.Listen(serving)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Serving", "address", server.URL(), "paths", []string{"/", "/api/v1/", "/metrics", "/livez", "/readyz"}, "auth", o.httpAuth())
	if o.Serving != nil {
		o.Serving(server.Address())
	}
	return pipeline{
		server: server, informers: informers, queue: q, turn: turn, remember: show.remember,
		reconcile: func(term int64) (reconcile.Func, *publish.Events) {
			publication := o.publication()
			publication.Term = term
			publisher := publish.New(client.CoreV1(), publication, informers)
			events := o.events(client, publisher)
			return inside.passes.timed(show.timed(reconcile.New(told(reconcile.Options{
				Observe: informers.World,
				Publish: inside.passes.published(show.shown(publisher)),
			}, events)).Reconcile)), events
		},
		advise: func(ctx context.Context) string { return preflight.Advise(ctx, client, o.needs()) },
	}.run(ctx, o)
}

// informers prepares the first stage and says what it will count.
func (o *Options) informers(ctx context.Context, client kubernetes.Interface, handler watch.Handler) (*watch.Watch, error) {
	names, err := o.names()
	if err != nil {
		return nil, err
	}
	selector, err := labels.Parse(o.PodSelector)
	if err != nil {
		return nil, fmt.Errorf("parse pod selector: %w", err)
	}
	draClasses, err := o.draClasses(names)
	if err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Counting", "resources", append(count.DefaultNames(), o.GPUResources...), "pods", scope(o), "nodes", o.WatchNodes)
	klog.FromContext(ctx).Info("Publishing", "namespace", o.Namespace, "configMaps", o.published())
	informers, err := watch.New(client, watch.Options{
		Names:        names,
		PodNamespace: o.WatchNamespace,
		PodSelector:  selector,
		Nodes:        o.WatchNodes,
		DRAClasses:   draClasses,
		Published:    watch.Published{Namespace: o.Namespace, Selector: publish.Selector(o.Name)},
		Resync:       o.Resync,
	}, handler)
	if err != nil {
		return nil, fmt.Errorf("prepare informers: %w", err)
	}
	return informers, nil
}

// pipeline is everything that has a life.
type pipeline struct {
	server    *serve.Server
	informers *watch.Watch
	queue     queue.Queue
	turn      leadership
	reconcile func(term int64) (reconcile.Func, *publish.Events)
	advise    func(context.Context) string
	remember  func(context.Context)
}

// run starts what every replica does, and once the caches are complete waits for its
// turn to publish. It is ready before that.
func (p pipeline) run(parent context.Context, o *Options) error {
	ctx, cancel := context.WithCancelCause(parent)
	var wg sync.WaitGroup
	defer func() {
		cancel(nil)
		wg.Wait()
	}()
	wg.Go(func() {
		if err := p.server.Run(ctx); err != nil {
			cancel(err)
		}
	})
	wg.Go(func() { p.informers.Run(ctx) })
	wg.Go(func() { p.remember(ctx) })

	err := p.waitForSync(ctx, o.CacheSyncTimeout)
	if err == nil {
		err = p.turn.run(ctx, func(ctx context.Context, term int64) error { return p.work(ctx, term, o) })
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if parent.Err() != nil && !errors.Is(err, lead.ErrLost) {
		return nil // we were asked to end, and that is no failure
	}
	return err
}

// work publishes until ctx ends, or a later leader has.
func (p pipeline) work(parent context.Context, term int64, o *Options) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	pass, events := p.reconcile(term)
	if events != nil {
		wg.Go(func() { events.Run(ctx) })
	}
	// In a cluster without GPUs no event may ever come, and that too is worth
	// saying.
	p.queue.Add(queue.Summary)
	reconcile.Run(ctx, p.queue, o.Settle, untilFenced(pass, end))
	if parent.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// waitForSync waits for the caches, but not for ever: a controller that does
// nothing and says nothing is worse than one that ends.
func (p pipeline) waitForSync(ctx context.Context, timeout time.Duration) error {
	bounded, cancel := context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("nothing is published from an incomplete cache; gave up after --cache-sync-timeout=%v", timeout))
	defer cancel()
	if err := p.informers.WaitForSync(bounded); err != nil {
		// Most often it is a permission, and then it is rarely the only one.
		return fmt.Errorf("%w\n%s", err, p.advise(ctx))
	}
	// DRA is worth a moment, so that the first numbers are not published without it.
	// Device plugins are counted whatever becomes of it.
	p.informers.WaitForDRA(bounded)
	return nil
}

func scope(o *Options) string {
	where := "all namespaces"
	if o.WatchNamespace != "" {
		where = "namespace " + o.WatchNamespace
	}
	if o.PodSelector != "" {
		where += " with " + o.PodSelector
	}
	return where
}
