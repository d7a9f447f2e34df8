package lead_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

func options(identity string) lead.Options {
	return lead.Options{
		Namespace: namespace, Name: name, Identity: identity,
		LeaseDuration: lead.DefaultLeaseDuration, RenewDeadline: lead.DefaultRenewDeadline, RetryPeriod: lead.DefaultRetryPeriod,
	}
}

// candidate runs for the lease until ctx ends or the lease is lost, and has
// returned when its work has.
type candidate func(ctx context.Context, client *link, identity string, work func(ctx context.Context, term int64)) error

// product is this package.
func product(ctx context.Context, client *link, identity string, work func(context.Context, int64)) error {
	l, err := lead.New(client, options(identity))
	if err != nil {
		return err
	}
	return l.Run(ctx, func(ctx context.Context, term int64) error {
		work(ctx, term)
		return nil
	})
}

// stock is client-go's elector as its example uses it, with the same times: the
// context of work is the elector's, and the process ends when the elector does.
func stock(release bool) candidate {
	return func(ctx context.Context, client *link, identity string, work func(context.Context, int64)) error {
		var (
			mu      sync.Mutex
			over    bool
			working sync.WaitGroup
		)
		o := options(identity)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
				Client:     client,
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
			},
			LeaseDuration: o.LeaseDuration, RenewDeadline: o.RenewDeadline, RetryPeriod: o.RetryPeriod,
			ReleaseOnCancel: release,
			Callbacks: leaderelection.LeaderCallbacks{
				// It may be called when the elector has ended, or not at all.
				OnStartedLeading: func(ctx context.Context) {
					mu.Lock()
					if over {
						mu.Unlock()
						return
					}
					working.Add(1)
					mu.Unlock()
					defer working.Done()
					work(ctx, 0)
				},
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return err
		}
		elector.Run(ctx)
		mu.Lock()
		over = true
		mu.Unlock()
		working.Wait()
		if ctx.Err() == nil {
			return lead.ErrLost
		}
		return nil
	}
}

// referee watches who writes.
type referee struct {
	start time.Time

	mu       sync.Mutex
	writing  map[string]bool
	overlaps map[string]time.Duration // of each two, for how long
	busy     time.Duration            // in which somebody wrote
	last     time.Time                // when writing changed last
	terms    []int64                  // under which work was started
	history  []string
}

func newReferee() *referee {
	return &referee{start: time.Now(), last: time.Now(), writing: make(map[string]bool), overlaps: make(map[string]time.Duration)}
}

// note keeps what happened, with the time.
func (r *referee) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(format, args...)
}

func (r *referee) noteLocked(format string, args ...any) {
	r.history = append(r.history, fmt.Sprintf("%12v  ", time.Since(r.start))+fmt.Sprintf(format, args...))
}

// set begins or ends a write, and adds up for how long two wrote at once.
func (r *referee) set(id string, writing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := time.Since(r.last)
	r.last = time.Now()
	if len(r.writing) > 0 {
		r.busy += since
	}
	if len(r.writing) > 1 && since > 0 {
		both := strings.Join(slices.Sorted(maps.Keys(r.writing)), " and ")
		if r.overlaps[both] += since; r.overlaps[both] == since {
			r.noteLocked("OVERLAP of %s", both)
		}
	}
	if writing {
		r.writing[id] = true
	} else {
		delete(r.writing, id)
	}
}

// writer writes without a pause while its context lives. A write takes a while,
// and one that was begun ends. (If abrupt, it ends with the context: that is kinder
// than any network.)
func (r *referee) writer(id string, takes time.Duration, abrupt bool) func(context.Context, int64) {
	return func(ctx context.Context, term int64) {
		r.mu.Lock()
		r.terms = append(r.terms, term)
		r.noteLocked("%s starts to work, term %d", id, term)
		r.mu.Unlock()
		defer func() { r.note("%s has ended its work", id) }()
		finish := context.WithoutCancel(ctx)
		if abrupt {
			finish = ctx
		}
		for ctx.Err() == nil {
			r.set(id, true)
			_ = pass(finish, nil, takes) // ended either way
			r.set(id, false)
		}
	}
}

// overlapped is how long each two wrote at once.
func (r *referee) overlapped() map[string]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.overlaps)
}

// log prints the history of a test that failed.
func (r *referee) log(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.history {
		t.Log(line)
	}
}

// process is a candidate that is running.
type process struct {
	*link
	terminate context.CancelFunc // SIGTERM
	done      chan struct{}
	err       error // once done is closed
}

// start runs a candidate.
func start(parent context.Context, c candidate, client *link, identity string, work func(context.Context, int64)) *process {
	ctx, cancel := context.WithCancel(klog.NewContext(parent, klog.Logger{}))
	p := &process{link: client, terminate: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = c(ctx, client, identity, work)
	}()
	return p
}
