package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/queue"
	"github.com/gpu-summary/gpu-summary-controller/internal/reconcile"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
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
	klog.FromContext(ctx).Info("Starting gpu-summary-controller", "version", Version(), "go", runtime.Version())
	klog.FromContext(ctx).Info("Using cluster", "server", c.config.Host, "found", c.source)
	return Control(ctx, c.config, o)
}

// Control runs all stages against one API server until ctx ends or one of them
// fails, and returns when every goroutine has. o.Namespace must be set.
func Control(ctx context.Context, config *rest.Config, o *Options) error {
	client, err := kubernetes.NewForConfig(tune(config, o))
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	names, err := o.names()
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Counting", "resources", append(count.DefaultNames(), o.GPUResources...), "pods", scope(o), "nodes", o.WatchNodes)
	klog.FromContext(ctx).Info("Publishing", "namespace", o.Namespace, "configMaps", o.published())

	q := queue.New(clock.RealClock{})
	// Run shuts the queue down too; this is for the ways out before it.
	defer q.ShutDown()
	selector, err := labels.Parse(o.PodSelector)
	if err != nil {
		return fmt.Errorf("parse pod selector: %w", err)
	}
	draClasses, err := o.draClasses(names)
	if err != nil {
		return err
	}
	informers, err := watch.New(client, watch.Options{
		Names:        names,
		PodNamespace: o.WatchNamespace,
		PodSelector:  selector,
		Nodes:        o.WatchNodes,
		DRAClasses:   draClasses,
		Published:    watch.Published{Namespace: o.Namespace, Selector: publish.Selector(o.Name)},
		Resync:       o.Resync,
	}, queue.Enqueuer{Queue: q})
	if err != nil {
		return fmt.Errorf("prepare informers: %w", err)
	}
	server, err := serve.Listen(o.HTTPAddress, conditions(informers))
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Serving", "address", "http://"+server.Address(), "paths", []string{"/metrics", "/livez", "/readyz"})
	if o.Serving != nil {
		o.Serving(server.Address())
	}
	reconciler := reconcile.New(reconcile.Options{
		Observe: informers.World,
		Publish: publish.New(client.CoreV1(), o.publication(), informers).Publish,
	})
	return pipeline{server: server, informers: informers, queue: q, reconcile: reconciler.Reconcile}.run(ctx, o)
}

// pipeline is everything that has a life.
type pipeline struct {
	server    *serve.Server
	informers *watch.Watch
	queue     queue.Queue
	reconcile reconcile.Func
}

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

	err := waitForSync(ctx, p.informers, o.CacheSyncTimeout)
	if err == nil {
		// In a cluster without GPUs no event may ever come, and that too is worth
		// saying.
		p.queue.Add(queue.Summary)
		reconcile.Run(ctx, p.queue, o.Settle, p.reconcile)
		err = context.Cause(ctx)
	}
	if parent.Err() != nil {
		return nil // we were asked to end, and that is no failure
	}
	return err
}

// waitForSync waits for the caches, but not for ever: a controller that does
// nothing and says nothing is worse than one that ends.
func waitForSync(ctx context.Context, informers *watch.Watch, timeout time.Duration) error {
	bounded, cancel := context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("nothing is published from an incomplete cache; gave up after --cache-sync-timeout=%v", timeout))
	defer cancel()
	if err := informers.WaitForSync(bounded); err != nil {
		return advise(err)
	}
	// DRA is worth a moment, so that the first numbers are not published without it.
	// Device plugins are counted whatever becomes of it.
	informers.WaitForDRA(bounded)
	return nil
}

// advise says what to do about a cache that did not sync.
func advise(err error) error {
	var sync *watch.SyncError
	if !errors.As(err, &sync) || !apierrors.IsForbidden(sync.Err) {
		return err
	}
	advice := fmt.Sprintf("grant the verb %q on %s, as deploy/manifests/rbac.yaml does", sync.Verb, sync.Resource)
	if sync.Resource == "nodes" {
		advice += ", or run with --watch-nodes=false"
	}
	return fmt.Errorf("%w\n%s", err, advice)
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
