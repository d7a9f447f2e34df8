package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/discover"
)

// draInformerName labels their informer_* metrics. It is a name of its own because
// a session's informers come and go, and give it back when they do.
const draInformerName = InformerName + "-dra"

// draSession is one set of informers.
type draSession struct {
	group                   *group
	classes, slices, claims *source
	// forward is false until everything has been synced: what a pass cannot see is
	// no reason for one.
	forward atomic.Bool
	cancel  context.CancelFunc
	done    sync.WaitGroup

	failed  chan struct{} // closed when a request met what trying again does not mend
	mu      sync.Mutex
	refused map[string]error // by resource
}

func newDRASession(client kubernetes.Interface, o Options, h Handler) (*draSession, error) {
	group, err := newGroup(client, draInformerName, o.Resync)
	if err != nil {
		return nil, err
	}
	s := &draSession{
		group:  group,
		failed: make(chan struct{}), refused: make(map[string]error), cancel: func() {},
	}
	api, version := client.ResourceV1(), resourcev1.SchemeGroupVersion
	s.classes = group.add(version.WithResource("deviceclasses"), &resourcev1.DeviceClass{},
		noting{s, "deviceclasses", &typed[*resourcev1.DeviceClassList]{client: api.DeviceClasses()}}, trimClass(o.Names), nil)
	s.slices = group.add(version.WithResource("resourceslices"), &resourcev1.ResourceSlice{},
		noting{s, "resourceslices", &typed[*resourcev1.ResourceSliceList]{client: api.ResourceSlices()}}, trimSlice, nil)
	s.claims = group.add(version.WithResource("resourceclaims"), &resourcev1.ResourceClaim{},
		noting{s, "resourceclaims", &typed[*resourcev1.ResourceClaimList]{client: api.ResourceClaims(metav1.NamespaceAll)}}, trimClaim, nil)
	if err := s.register(h); err != nil {
		group.factory.Shutdown()
		return nil, err
	}
	return s, nil
}

// register hands the handler to the informers.
func (s *draSession) register(h Handler) error {
	err := handle(s.classes, func(old, new *classRecord) {
		if s.forward.Load() {
			h.DeviceClassChanged(old.record(), new.record())
		}
	})
	if err == nil {
		err = handle(s.slices, func(old, new *sliceRecord) {
			if s.forward.Load() {
				h.ResourceSliceChanged(old.record(), new.record())
			}
		})
	}
	if err == nil {
		err = handle(s.claims, func(old, new *claimRecord) {
			if s.forward.Load() {
				h.ResourceClaimChanged(old.record(), new.record())
			}
		})
	}
	for _, source := range s.sources() {
		if err == nil {
			err = source.informer.SetWatchErrorHandlerWithContext(s.onWatchError)
		}
	}
	return err
}

func (s *draSession) sources() []*source { return s.group.sources }

// noting reaches a resource, taking note of what was refused.
type noting struct {
	session  *draSession
	resource string
	reach
}

func (n noting) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := n.reach.list(ctx, o)
	n.session.note(n.resource, err)
	return list, err
}

func (n noting) watch(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	w, err := n.reach.watch(ctx, o)
	n.session.note(n.resource, err)
	return w, err
}

// ends reports whether an error ends a session: the API is gone, or the permission.
// All others pass, and reflectors try again by themselves.
func ends(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }

func (s *draSession) note(resource string, err error) {
	if err == nil || !ends(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) == 0 {
		close(s.failed)
	}
	s.refused[resource] = err
}

// onWatchError logs what client-go would, but for what is reported as a state.
func (s *draSession) onWatchError(ctx context.Context, r *cache.Reflector, err error) {
	if !ends(err) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

// failure says what has ended the session.
func (s *draSession) failure() (count.DRAState, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var forbidden, gone []string
	for resource, err := range s.refused {
		if apierrors.IsForbidden(err) {
			forbidden = append(forbidden, resource)
		} else {
			gone = append(gone, resource)
		}
	}
	slices.Sort(forbidden)
	slices.Sort(gone)
	if len(gone) > 0 {
		return count.DRAAbsent, fmt.Sprintf("the API server no longer serves %s of %s", strings.Join(gone, ", "), resourcev1.SchemeGroupVersion)
	}
	return count.DRAForbidden, fmt.Sprintf("no permission to list and watch %s in %s", strings.Join(forbidden, ", "), resourcev1.GroupName)
}

func (s *draSession) firstError() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range discover.DRAResources {
		if s.refused[resource] != nil {
			return s.refused[resource]
		}
	}
	return nil
}

func (s *draSession) start(parent context.Context) {
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(parent)
	s.done.Go(func() { s.group.run(ctx) })
}

// stop ends the informers and returns when they have ended.
func (s *draSession) stop() {
	s.forward.Store(false)
	s.cancel()
	s.done.Wait()
}

// synced is closed when every cache is complete and stays current. It is never
// closed if the session fails, or ctx ends, before.
func (s *draSession) synced(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		for _, source := range s.sources() {
			for _, check := range source.checks() {
				select {
				case <-check.Done():
				case <-s.failed:
					return
				case <-ctx.Done():
					return
				}
			}
		}
		close(done)
	}()
	return done
}
