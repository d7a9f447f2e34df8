package lead_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

const (
	namespace = "monitoring"
	name      = "gpu-summary"
)

// server is an API server with room for one Lease. Unlike client-go's fake it
// knows resourceVersions and refuses what rests on an old one.
type server struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
	writes  []write
	changed chan struct{} // closed at the next write
}

// write is what the server stored: who holds the lease since when.
type write struct {
	at     time.Time
	holder string
}

func newServer() *server { return &server{changed: make(chan struct{})} }

func (s *server) get() (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
	}
	return s.lease.DeepCopy(), nil
}

func (s *server) create(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease != nil {
		return nil, apierrors.NewAlreadyExists(coordinationv1.Resource("leases"), name)
	}
	return s.store(lease), nil
}

func (s *server) update(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
	}
	if lease.ResourceVersion != s.lease.ResourceVersion {
		return nil, apierrors.NewConflict(coordinationv1.Resource("leases"), name, errors.New("resourceVersion is old"))
	}
	return s.store(lease), nil
}

func (s *server) store(lease *coordinationv1.Lease) *coordinationv1.Lease {
	s.version++
	s.lease = lease.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.version)
	s.writes = append(s.writes, write{time.Now(), *lease.Spec.HolderIdentity})
	close(s.changed)
	s.changed = make(chan struct{})
	return s.lease.DeepCopy()
}

// remove deletes the Lease, as somebody with kubectl might.
func (s *server) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = nil
}

// clear takes the lease from its holder, as one does who led and gave back.
func (s *server) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	nobody, term := "", *s.lease.Spec.LeaseTransitions+1
	s.lease.Spec.HolderIdentity, s.lease.Spec.LeaseTransitions = &nobody, &term
	s.store(s.lease)
}

func (s *server) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return ""
	}
	return *s.lease.Spec.HolderIdentity
}

// written returns all writes so far.
func (s *server) written() []write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// last is when a's last write was stored.
func (s *server) last() (at time.Time) {
	for _, w := range s.written() {
		if w.holder == "a" {
			at = w.at
		}
	}
	return at
}

// renewed is what the Lease says.
func (s *server) renewed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.Spec.RenewTime.Time
}

func (s *server) term() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(*s.lease.Spec.LeaseTransitions)
}

// next waits for the next write.
func (s *server) next() {
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	<-changed
}

// until waits until this is the holder.
func (s *server) until(holder string) {
	for s.holder() != holder {
		s.next()
	}
}

// weather is what the network does to the requests of one replica.
type weather struct {
	refuse      bool
	there, back <-chan struct{} // requests, replies wait until it is closed; nil is no wait
	delay       time.Duration   // of each request and of each reply
	late        bool            // a request that the client gave up arrives all the same
}

// link is one replica's client, and its way to the server: the traffic about the
// Lease and nothing else.
type link struct {
	coordinationv1client.LeaseInterface // nil; what is not implemented below is not used

	server  *server
	timeout time.Duration // of the client; 0 is none
	weather atomic.Pointer[weather]
	asked   atomic.Int32 // requests so far
}

func newLink(s *server, timeout time.Duration) *link {
	l := &link{server: s, timeout: timeout}
	l.weather.Store(&weather{delay: time.Millisecond})
	return l
}

func (l *link) Leases(string) coordinationv1client.LeaseInterface { return l }

func (l *link) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.call(ctx, l.server.get)
}

func (l *link) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	lease = lease.DeepCopy()
	return l.call(ctx, func() (*coordinationv1.Lease, error) { return l.server.create(lease) })
}

func (l *link) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	lease = lease.DeepCopy()
	return l.call(ctx, func() (*coordinationv1.Lease, error) { return l.server.update(lease) })
}

func (l *link) call(ctx context.Context, do func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	l.asked.Add(1)
	if l.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.timeout)
		defer cancel()
	}
	w := l.weather.Load()
	if w.refuse {
		return nil, errors.New("connection refused")
	}
	if err := pass(ctx, w.there, w.delay); err != nil {
		if w.late && w.there != nil {
			go func() {
				<-w.there
				_, _ = do() // nobody listens any more
			}()
		}
		return nil, fmt.Errorf("send request: %w", err)
	}
	lease, err := do()
	w = l.weather.Load()
	if err := pass(ctx, w.back, w.delay); err != nil {
		return nil, fmt.Errorf("read reply: %w", err)
	}
	return lease, err
}

// pass lets a message through, unless ctx ends first.
func pass(ctx context.Context, stall <-chan struct{}, delay time.Duration) error {
	if stall != nil {
		select {
		case <-stall:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if delay == 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
