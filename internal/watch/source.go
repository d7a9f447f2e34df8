package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// source is one informer, and what is known of its way to the server.
type source struct {
	resource   string
	informer   cache.SharedIndexInformer
	reach      reach
	registered cache.ResourceEventHandlerRegistration
	watching   opened

	mu      sync.Mutex
	failure *SyncError // the last request that failed, nil after one succeeded
}

// reach is how to reach one resource.
type reach interface {
	list(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
	// at is the position of a store that has come to a version, and behind whether more
	// was handed on than it holds.
	at(version string) string
	behind(version string) bool
	// numbers counts what comes by.
	numbers() *stats
}

// typed reaches a resource with a typed client.
type typed[L runtime.Object] struct {
	client interface {
		List(context.Context, metav1.ListOptions) (L, error)
		Watch(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
	}
	scope    func(*metav1.ListOptions) // nil for everything
	position position
	stats    stats
}

func (t *typed[L]) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if t.scope != nil {
		t.scope(&o)
	}
	list, err := t.client.List(ctx, o)
	if err != nil || exact(o) {
		return list, err
	}
	objects := int64(meta.LenList(list))
	t.stats.handedOn.Add(objects)
	t.stats.decoded.Add(objects)
	if of, err := meta.ListAccessor(list); err == nil {
		t.position.pass(of.GetResourceVersion())
	}
	return list, nil
}

func (t *typed[L]) watch(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	if t.scope != nil {
		t.scope(&o)
	}
	o.ResourceVersion = t.position.of(o.ResourceVersion)
	w, err := t.client.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return t.position.track(w, streams(o), &t.stats), nil
}

func (t *typed[L]) at(version string) string { return t.position.of(version) }

func (t *typed[L]) behind(version string) bool { return t.position.ahead(version) }

func (t *typed[L]) numbers() *stats { return &t.stats }

// group is a set of sources that begin and end together.
type group struct {
	factory informers.SharedInformerFactory
	sources []*source
}

// newGroup makes a factory. Its name labels the informer_* metrics and is taken
// until the group has run.
func newGroup(client kubernetes.Interface, name string, resync time.Duration) (*group, error) {
	reserved, err := cache.NewInformerName(name)
	if err != nil {
		return nil, fmt.Errorf("reserve informer name: %w", err)
	}
	return &group{factory: informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithInformerName(reserved))}, nil
}

// add makes the factory's informer for objects like example.
func (g *group) add(resource schema.GroupVersionResource, example runtime.Object, r reach, trim cache.TransformFunc, indexers cache.Indexers) *source {
	s := &source{resource: resource.Resource, reach: r, watching: opened{resource: resource.Resource, once: new(sync.Once), done: make(chan struct{})}}
	s.informer = g.factory.InformerFor(example, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformerWithOptions(
			cache.ToListWatcherWithWatchListSemantics(s.observe(r), client), example,
			cache.SharedIndexInformerOptions{
				ResyncPeriod: resync, Indexers: indexers, ObjectDescription: resource.Resource,
				Identifier: g.factory.InformerName().WithResource(resource),
			})
	})
	if trim != nil {
		// Only an informer that has been started refuses a transform.
		_ = s.informer.SetTransform(trim)
	}
	g.sources = append(g.sources, s)
	return s
}

// run runs all of them until ctx ends, and returns when the last has stopped.
func (g *group) run(ctx context.Context) {
	g.factory.StartWithContext(ctx)
	<-ctx.Done()
	g.factory.Shutdown()
}

// observe is the ListWatch that a reflector uses, taking note of how each request
// went.
func (s *source) observe(r reach) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := r.list(ctx, o)
			s.note("list", err)
			if err == nil && !exact(o) {
				r.numbers().listed()
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			w, err := r.watch(ctx, o)
			s.note("watch", err)
			if err == nil {
				s.watching.open()
				if streams(o) {
					r.numbers().listed()
				}
			}
			return w, err
		},
	}
}

func (s *source) note(verb string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.failure = nil
		return
	}
	s.failure = &SyncError{Resource: s.resource, Verb: verb, Err: err}
	s.reach.numbers().failed(err)
}

// checks are done once the source is complete and stays current.
func (s *source) checks() []cache.DoneChecker {
	return []cache.DoneChecker{s.informer.HasSyncedChecker(), s.registered.HasSyncedChecker(), s.watching}
}

// err says what the source still lacks, nil once it has been complete.
func (s *source) err() error {
	for _, c := range s.checks() {
		if cache.IsDone(c) {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.failure != nil {
			return s.failure
		}
		return &SyncError{Resource: s.resource, Verb: "list", Err: errNoAnswer}
	}
	return nil
}

// version is that of the last change in the store.
func (s *source) version() string { return s.informer.GetIndexer().LastStoreSyncResourceVersion() }

// complete is the version up to which the store has everything.
func (s *source) complete() string { return s.reach.at(s.version()) }

// opened is done when the server has accepted a watch for the first time.
type opened struct {
	resource string
	once     *sync.Once
	done     chan struct{}
}

func (o opened) Name() string          { return "watch of " + o.resource }
func (o opened) Done() <-chan struct{} { return o.done }

func (o opened) open() { o.once.Do(func() { close(o.done) }) }

// SyncError says that a cache could not be filled or kept current.
type SyncError struct {
	Resource string // plural, as RBAC names it: "pods"
	Verb     string // "list" or "watch"
	Err      error  // what the last request met
}

func (e *SyncError) Error() string {
	return fmt.Sprintf("cache of %s did not sync: %s %s: %v", e.Resource, e.Verb, e.Resource, e.Err)
}

func (e *SyncError) Unwrap() error { return e.Err }

var errNoAnswer = errors.New("the API server has not sent everything yet")
