package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	registered cache.ResourceEventHandlerRegistration
	watching   opened

	mu      sync.Mutex
	failure *SyncError // the last request that failed, nil after one succeeded
}

// listWatch is how to reach one resource with a typed client.
type listWatch[L runtime.Object] struct {
	list  func(context.Context, metav1.ListOptions) (L, error)
	watch func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
	scope func(*metav1.ListOptions)
	group schema.GroupVersion // empty for core's
}

// newSource makes the factory's informer for example. The factory starts it.
func newSource[L runtime.Object](factory informers.SharedInformerFactory, resource string, example runtime.Object,
	lw listWatch[L], trim cache.TransformFunc, indexers cache.Indexers,
) *source {
	s := &source{resource: resource, watching: opened{resource: resource, once: new(sync.Once), done: make(chan struct{})}}
	group := lw.group
	if group.Empty() {
		group = corev1.SchemeGroupVersion
	}
	s.informer = factory.InformerFor(example, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformerWithOptions(
			cache.ToListWatcherWithWatchListSemantics(observe(s, lw), client), example,
			cache.SharedIndexInformerOptions{
				ResyncPeriod: resync,
				Indexers:     indexers,
				Identifier:   factory.InformerName().WithResource(group.WithResource(resource)),
			})
	})
	// Only an informer that has been started refuses a transform.
	_ = s.informer.SetTransform(trim)
	return s
}

// observe is the ListWatch that a reflector uses, taking note of how each request
// went.
func observe[L runtime.Object](s *source, lw listWatch[L]) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			lw.scope(&o)
			list, err := lw.list(ctx, o)
			s.note("list", err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			lw.scope(&o)
			w, err := lw.watch(ctx, o)
			s.note("watch", err)
			if err == nil {
				s.watching.open()
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

func (s *source) version() string { return s.informer.GetIndexer().LastStoreSyncResourceVersion() }

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
