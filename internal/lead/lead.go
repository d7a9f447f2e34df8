// Package lead is leadership: a lease in, "you may write" out.
//
// Writes are safe without it. It keeps several replicas from doing the same work,
// and from undoing each other's: one leads, the others keep their caches warm.
//
// The election is client-go's, and its package says that it does not fence. It
// also gives the lease back while work is still going on, works on after its
// lease, and can clear a lease that is another's (docs/client-go-leader-election.md).
// Here the lease is counted from when a renewal was sent, work has returned before
// the lease is given back, and what is not ours is never cleared. What no clock can
// give, safety from a process that slept through its own lease or a request that
// was under way, comes from the term, by which writes are fenced.
package lead

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// ErrLost is why work was told to stop although nobody asked for it.
var ErrLost = errors.New("lost the lease")

// Lead is one candidate.
type Lead struct {
	lock    *lock
	elector *leaderelection.LeaderElector
	elected chan struct{}
	working atomic.Bool
}

// Identity returns a name for this process: the host's, and something that no
// earlier process had, not even that of the same pod.
func Identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name this process: %w", err)
	}
	return host + "_" + rand.Text()[:10], nil
}

// New makes a candidate. The client should be made from ClientConfig.
func New(client coordinationv1client.LeasesGetter, o Options) (*Lead, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Namespace == "" || o.Identity == "" {
		return nil, fmt.Errorf("lease %q in namespace %q for identity %q: none of them may be empty", o.Name, o.Namespace, o.Identity)
	}
	l := &Lead{elected: make(chan struct{})}
	l.lock = newLock(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
	}, o)
	var err error
	l.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:          o.Name,
		Lock:          l.lock,
		LeaseDuration: o.LeaseDuration,
		RenewDeadline: o.RenewDeadline,
		RetryPeriod:   o.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			// The elector starts this on its own and waits for nothing, so nothing is done
			// in it.
			OnStartedLeading: func(context.Context) { close(l.elected) },
			OnStoppedLeading: func() {},
		},
		// It would be released as soon as renewing ends, whoever holds it by then and
		// whatever work is doing.
		ReleaseOnCancel: false,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare election: %w", err)
	}
	return l, nil
}

// Run waits for the lease, calls work while it is held, and returns when work has.
// A candidate runs once.
//
// Work's context ends with ctx, and on loss of the lease: when the last renewal
// was sent RenewDeadline ago, or when the Lease names another. From then on work
// has LeaseDuration - RenewDeadline, less a second, to return before another may
// start. Asked to end by ctx it has all the time it needs, for the lease is renewed
// until it has returned, and then given back. After a loss the Lease is not touched.
//
// The term is leaseTransitions of the Lease as it was acquired. It rises with each
// acquisition, be it from another holder, from one that gave it back, or from an
// earlier process of this pod, so no two leaders have the same (unless the Lease was
// deleted: see MinTerm). It stays as it is while the lease is held.
//
// The result is nil when ctx ended, whether we ever led or not; ErrLost when the
// lease was lost, also while work was draining; else what work returned.
func (l *Lead) Run(ctx context.Context, work func(ctx context.Context, term int64) error) error {
	// Not ctx itself, because the lease has to be renewed for as long as work drains.
	election, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.elector.Run(election)
	}()
	stop := func() {
		end()
		<-ended
	}
	defer stop()

	var err error
	select {
	case <-l.elected:
		err = l.lead(ctx, end, work)
	case <-ctx.Done():
	}
	stop()
	if errors.Is(err, ErrLost) {
		return err
	}
	if err := l.lock.giveBack(context.WithoutCancel(ctx)); err != nil {
		klog.FromContext(ctx).Info("Could not give the lease back, the next leader has to wait until it expires", "lease", l.lock.Describe(), "err", err)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // work said that it was told to stop
	}
	return err
}

// lead calls work, under a context that ends when the lease is lost. So does the
// election then: it would go on trying to renew.
func (l *Lead) lead(ctx context.Context, endElection func(), work func(context.Context, int64) error) error {
	if ctx.Err() != nil {
		return nil
	}
	if lost := l.loss(); lost != nil {
		return lost
	}
	term := l.term()
	klog.FromContext(ctx).Info("Leading", "lease", l.lock.Describe(), "identity", l.lock.Identity(), "term", term)
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	returned := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		l.lock.watch(returned)
		if err := l.loss(); err != nil {
			stop(err)
			endElection()
		}
	})
	defer wg.Wait()
	defer close(returned)
	l.working.Store(true)
	defer l.working.Store(false)
	err := work(working, term)
	if lost := l.loss(); lost != nil {
		return lostWith(lost, err)
	}
	return err
}

// lostWith adds what work said, unless that is only that it was told to stop.
func lostWith(lost, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrLost) {
		return lost
	}
	return errors.Join(lost, err)
}

// Leading reports whether work is going on under a lease that is ours. It looks at
// the clock, so it is right also where work's context is late to end.
func (l *Lead) Leading() bool { return l.working.Load() && l.loss() == nil }

// Holder is who held the lease when it was last read or written, "" for nobody.
func (l *Lead) Holder() string {
	l.lock.mu.Lock()
	defer l.lock.mu.Unlock()
	return l.lock.holder
}

// Health fails when work goes on although the lease was last renewed longer than
// bound ago: it was told to stop and did not. Nothing but the end of the process
// helps then. A standby is healthy.
func (l *Lead) Health(bound time.Duration) error {
	if !l.working.Load() {
		return nil
	}
	l.lock.mu.Lock()
	defer l.lock.mu.Unlock()
	if age := time.Since(l.lock.renewed); age > bound {
		return fmt.Errorf("lease %s was last renewed %v ago, and work goes on", l.lock.Describe(), age.Round(time.Second))
	}
	return nil
}

func (l *Lead) term() int64 {
	l.lock.mu.Lock()
	defer l.lock.mu.Unlock()
	return l.lock.term
}

// loss is why the lease is not ours any more, nil if it is or never was.
func (l *Lead) loss() error {
	_, err := l.lock.left()
	return err
}
