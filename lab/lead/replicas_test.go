package lead_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

// Shorter than the defaults, with a wide gap between them: a busy machine must
// not decide who is first.
const (
	duration = 5 * time.Second
	deadline = 3 * time.Second
	period   = 300 * time.Millisecond

	namespace = metav1.NamespaceDefault
	// patience bounds every wait.
	patience = 90 * time.Second
)

// work is called while its replica leads.
type work func(ctx context.Context)

// candidate runs for a lease until ctx ends or the lease is lost.
type candidate func(ctx context.Context, config *rest.Config, name, identity string, work work) error

func product(ctx context.Context, config *rest.Config, name, identity string, work work) error {
	client, err := kubernetes.NewForConfig(lead.ClientConfig(config, deadline))
	if err != nil {
		return err
	}
	l, err := lead.New(client.CoordinationV1(), lead.Options{
		Namespace: namespace, Name: name, Identity: identity,
		LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: period,
	})
	if err != nil {
		return err
	}
	return l.Run(ctx, func(ctx context.Context, _ int64) error {
		work(ctx)
		return nil
	})
}

// stock is client-go's elector. With a timeout its client is as
// resourcelock.NewFromKubeconfig makes it, without one as many make it themselves.
func stock(release, timeout bool) candidate {
	return func(ctx context.Context, config *rest.Config, name, identity string, work work) error {
		config = rest.CopyConfig(config)
		if timeout {
			config.Timeout = deadline / 2
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
				Client:     client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
			},
			LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: period, ReleaseOnCancel: release,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: work, OnStoppedLeading: func() {}},
		})
		if err != nil {
			return err
		}
		elector.Run(ctx)
		return nil
	}
}

// cluster is three replicas, each behind a proxy of its own, of which a leads.
type cluster struct {
	*testing.T
	name   string
	client kubernetes.Interface

	mu       sync.Mutex
	working  map[string]bool
	changed  chan struct{} // closed when somebody starts or ends work
	overlaps []string
	held     map[string]chan struct{} // until it is closed, work of that replica does not return

	proxies   map[string]*proxy
	terminate map[string]context.CancelFunc
}

func newCluster(t *testing.T, name string, c candidate) *cluster {
	t.Helper()
	client, err := kubernetes.NewForConfig(lab.Config())
	if err != nil {
		t.Fatal(err)
	}
	e := &cluster{
		T: t, name: name, client: client, working: map[string]bool{}, changed: make(chan struct{}),
		held: map[string]chan struct{}{}, proxies: map[string]*proxy{}, terminate: map[string]context.CancelFunc{},
	}
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	for _, id := range []string{"a", "b", "c"} {
		p := startProxy(t)
		ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(t.Context()), klog.Logger{}))
		t.Cleanup(cancel)
		e.proxies[id], e.terminate[id] = p, cancel
		wg.Go(func() { _ = c(ctx, &rest.Config{Host: p.url, QPS: -1}, name, id, e.work(id)) })
		e.await("a to lead", func() bool { return e.working["a"] })
	}
	return e
}

func (e *cluster) work(id string) work {
	return func(ctx context.Context) {
		e.set(id, true)
		<-ctx.Done()
		e.mu.Lock()
		held := e.held[id]
		e.mu.Unlock()
		if held != nil {
			<-held
		}
		e.set(id, false)
	}
}

// holdWork keeps the work of a replica from returning until release is called.
func (e *cluster) holdWork(id string) (release func()) {
	held := make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held[id] = held
	release = sync.OnceFunc(func() { close(held) })
	e.Cleanup(release)
	return release
}

func (e *cluster) set(id string, working bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if working {
		for other := range e.working {
			e.overlaps = append(e.overlaps, fmt.Sprintf("%s began to work while %s did", id, other))
		}
		e.working[id] = true
	} else {
		delete(e.working, id)
	}
	close(e.changed)
	e.changed = make(chan struct{})
}

// await waits until something is true of who works.
func (e *cluster) await(what string, condition func() bool) {
	e.Helper()
	timeout := time.After(patience)
	for {
		e.mu.Lock()
		fulfilled, changed := condition(), e.changed
		e.mu.Unlock()
		if fulfilled {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			e.Fatalf("waited %v for %s", patience, what)
		}
	}
}

func (e *cluster) another() bool { return e.working["b"] || e.working["c"] }

func (e *cluster) overlapped() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.overlaps, ", ")
}

func (e *cluster) lease() *coordinationv1.Lease {
	e.Helper()
	lease, err := e.client.CoordinationV1().Leases(namespace).Get(e.Context(), e.name, metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return lease
}

// leaseUntil polls the Lease until the condition holds, and says whether it did
// within the given time.
func (e *cluster) leaseUntil(bound time.Duration, condition func(*coordinationv1.Lease) bool) bool {
	e.Helper()
	tick, timeout := time.NewTicker(10*time.Millisecond), time.After(bound)
	defer tick.Stop()
	for {
		if condition(e.lease()) {
			return true
		}
		select {
		case <-tick.C:
		case <-timeout:
			return false
		}
	}
}

// eventually polls what cannot be waited for.
func (e *cluster) eventually(what string, condition func() bool) {
	e.Helper()
	tick, timeout := time.NewTicker(10*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-timeout:
			e.Fatalf("waited %v for %s", patience, what)
		}
	}
}
