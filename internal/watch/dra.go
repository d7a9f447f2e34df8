package watch

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/count/selector"
	"github.com/gpu-summary/gpu-summary-controller/internal/discover"
)

// How often a cluster without DRA, or one that does not let us see it, is asked
// again. An API or a permission that appears is noticed within the longer of these;
// until then it costs a request or two each time.
const (
	firstDRARetry = 10 * time.Second
	lastDRARetry  = 5 * time.Minute
	// draGrace is how long the other requests of a session that has lost one are
	// waited for, so that all that is forbidden is named at once.
	draGrace = time.Second
)

// dra watches what dynamic resource allocation is made of, as long as the API
// server has it and lets us. Many clusters have no such API, and of those that do
// many grant nobody a look: nothing may depend on it, and nothing wait for it for
// long. So its informers are not among the others. A session is a set of them; it
// ends when the API or a permission goes away, and another is tried later.
type dra struct {
	client  kubernetes.Interface
	options Options
	handler Handler
	// selectors outlives sessions and passes: it remembers what classes select.
	selectors selector.Cache

	mu      sync.Mutex
	state   count.DRAState
	reason  string
	session *draSession   // nil unless synced
	decided chan struct{} // closed once the state is no longer the first
}

func newDRA(client kubernetes.Interface, o Options, h Handler) *dra {
	return &dra{
		client: client, options: o, handler: h,
		state: count.DRASyncing, reason: "the API server has not been asked yet", decided: make(chan struct{}),
	}
}

// run tries and tries again until ctx ends. Between two tries the state stays what
// it is, so that nothing flaps while nothing changes.
func (d *dra) run(ctx context.Context) {
	for retry := firstDRARetry; ctx.Err() == nil; retry = min(2*retry, lastDRARetry) {
		state, reason, _ := discover.DRA(ctx, d.client.Discovery()) // the reason says enough of an error
		if state == count.DRASyncing {
			var wasSynced bool
			state, reason, wasSynced = d.watch(ctx)
			if wasSynced {
				retry = firstDRARetry
			}
		}
		if ctx.Err() != nil {
			return
		}
		d.set(ctx, state, reason, nil)
		select {
		case <-time.After(retry):
		case <-ctx.Done():
		}
	}
}

// watch runs a session until it fails, and says why.
func (d *dra) watch(ctx context.Context) (state count.DRAState, reason string, wasSynced bool) {
	s, err := newDRASession(d.client, d.options, d.handler)
	if err != nil {
		return count.DRAUnreachable, err.Error(), false
	}
	defer s.stop()
	s.start(ctx)
	select {
	case <-s.synced(ctx):
		wasSynced = true
		s.forward.Store(true)
		d.set(ctx, count.DRASynced, "", s)
		select {
		case <-s.failed:
		case <-ctx.Done():
		}
	case <-s.failed:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return "", "", wasSynced
	}
	select {
	case <-time.After(draGrace):
	case <-ctx.Done():
	}
	state, reason = s.failure()
	klog.FromContext(ctx).V(2).Info("DRA cannot be watched", "state", state, "reason", reason, "err", s.firstError())
	return state, reason, wasSynced
}

// set changes the state, and lets everybody know if it is another.
func (d *dra) set(ctx context.Context, state count.DRAState, reason string, s *draSession) {
	d.mu.Lock()
	changed := d.state != state || d.reason != reason
	d.state, d.reason, d.session = state, reason, s
	select {
	case <-d.decided:
	default:
		close(d.decided)
	}
	d.mu.Unlock()
	if changed {
		logger := klog.FromContext(ctx)
		if reason != "" {
			logger = logger.WithValues("reason", reason)
		}
		logger.Info("Dynamic resource allocation", "state", state)
		d.handler.DRAChanged()
	}
}

// status is the state and why it is not another.
func (d *dra) status() (count.DRAState, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state, d.reason
}

// world is DRA's part of the world.
func (d *dra) world() *count.DRA {
	d.mu.Lock()
	w := &count.DRA{State: d.state, Reason: d.reason, Resources: d.options.DRAClasses, Selectors: &d.selectors}
	s := d.session
	d.mu.Unlock()
	if s != nil {
		w.Classes = recordsOf(s.classes, (*classRecord).record)
		w.Slices = recordsOf(s.slices, (*sliceRecord).record)
		w.Claims = recordsOf(s.claims, (*claimRecord).record)
	}
	return w
}

// observe adds the versions of the stores, none when they are not counted.
func (d *dra) observe(o *count.Observed, of func(*source) string) {
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	if s != nil {
		o.Classes, o.Slices, o.Claims = of(s.classes), of(s.slices), of(s.claims)
	}
}

func recordsOf[R, C any](s *source, record func(R) C) []C {
	objs := s.informer.GetIndexer().List()
	records := make([]C, 0, len(objs))
	for _, obj := range objs {
		records = append(records, record(obj.(R)))
	}
	return records
}

// WaitForDRA blocks until it is known whether DRA can be counted, or ctx ends. Not
// knowing is no failure.
func (w *Watch) WaitForDRA(ctx context.Context) {
	select {
	case <-w.dra.decided:
	case <-ctx.Done():
	}
}

// DRA says whether DRA is counted, and if not, why.
func (w *Watch) DRA() (count.DRAState, string) { return w.dra.status() }
