package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/klog/v2"
)

// An Event that cannot be written is tried again for so long, less and less often.
// After that it is old news.
const (
	firstTry = time.Second
	lastTry  = 16 * time.Second
	giveUp   = 2 * time.Minute
)

var errGivenUp = errors.New("gave up after " + giveUp.String())

// sink writes Events for client-go's broadcaster. The broadcaster would give up at
// once when an API server says that it is overloaded, and log a line, with the whole
// Event, for each that is refused. So what fails is dealt with here: it sees success
// and nothing else.
type sink struct {
	client eventsv1client.EventsGetter

	mu      sync.Mutex
	waiting int            // Events handed to the broadcaster and not dealt with yet
	lost    map[string]int // by namespace, since the last one that was written there
	ended   bool
	dealt   chan struct{} // one of them was dealt with
	trying  sync.WaitGroup
}

func newSink(client eventsv1client.EventsGetter) *sink {
	return &sink{client: client, lost: make(map[string]int), dealt: make(chan struct{}, 1)}
}

// Create writes an Event, or does what can be done.
func (s *sink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	if s.begin() {
		defer s.trying.Done()
		s.result(ctx, e.Namespace, s.insist(ctx, e))
	}
	return e, nil
}

// Update is not used.
func (s *sink) Update(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) { return e, nil }

// Patch would count an Event up that is equal to one a while ago. There is none: it
// is forgotten by then. So the permission is not needed either.
func (s *sink) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	s.deal()
	return e, nil
}

func (s *sink) insist(ctx context.Context, e *eventsv1.Event) error {
	ctx, cancel := context.WithTimeoutCause(ctx, giveUp, errGivenUp)
	defer cancel()
	for wait := firstTry; ; wait = min(2*wait, lastTry) {
		_, err := s.client.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
		if err == nil || refused(err) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// refused reports whether the same would be said again. That it exists already is
// what a first try has left whose answer got lost.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code/100 == 4 &&
		!apierrors.IsTooManyRequests(err) && !apierrors.IsTimeout(err)
}

// result logs the first of several Events that are lost, and when they are not any
// more.
func (s *sink) result(ctx context.Context, namespace string, err error) {
	defer s.deal()
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lost[namespace]
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		if s.lost[namespace] = 0; lost > 0 {
			klog.FromContext(ctx).Info("Events are written again", "namespace", namespace, "lost", lost)
		}
	case ctx.Err() == nil: // that we end says nothing of the API server
		if s.lost[namespace]++; lost == 0 {
			klog.FromContext(ctx).Info("Events cannot be written, all else goes on; nothing more is said of it until one is", "namespace", namespace, "err", err)
		}
	}
}

func (s *sink) expect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
}

func (s *sink) deal() {
	s.mu.Lock()
	s.waiting = max(0, s.waiting-1)
	s.mu.Unlock()
	select {
	case s.dealt <- struct{}{}:
	default:
	}
}

// flush waits until all Events are dealt with, or ctx ends, and returns how many are
// left.
func (s *sink) flush(ctx context.Context) int {
	for {
		s.mu.Lock()
		waiting := s.waiting
		s.mu.Unlock()
		if waiting == 0 {
			return 0
		}
		select {
		case <-s.dealt:
		case <-ctx.Done():
			return waiting
		}
	}
}

// begin reports whether an Event may still be written.
func (s *sink) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.trying.Add(1)
	}
	return !s.ended
}

// end returns when nothing is being written any more, and nothing will be. The
// context of what is has ended by then.
func (s *sink) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.trying.Wait()
}
