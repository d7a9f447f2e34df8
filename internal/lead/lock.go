package lead

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock stands between the elector and the Lease. It knows what the elector does
// not: when the renewal that counts was sent, that another holder was seen, and
// whether the lease, once lost, is to be left alone.
type lock struct {
	resourcelock.Interface
	options Options
	gone    chan struct{} // closed when the lease is lost

	mu     sync.Mutex
	holder string // in the last record read or written
	next   int64  // a term above all that were seen
	tried  bool   // a write was sent, so the Lease may be ours whatever came back

	held    bool      // a write of ours succeeded
	term    int64     // leaseTransitions in it
	renewed time.Time // when the last that succeeded was sent
	lost    error     // why it is not held any more
}

func newLock(inner resourcelock.Interface, o Options) *lock {
	return &lock{Interface: inner, options: o, gone: make(chan struct{})}
}

// Get reads the record. A holder other than ourselves, while we lead, is the end
// of it at once: the elector would go on trying to renew, and on the way take the
// lease again, in another term, without work hearing of either.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		return nil, nil, err
	}
	l.saw(record.HolderIdentity, func() {
		l.next = max(l.next, int64(record.LeaderTransitions)+1)
		if l.held && record.HolderIdentity != l.Identity() {
			l.lose(fmt.Errorf("%w %s: it is held by %q", ErrLost, l.Describe(), record.HolderIdentity))
		}
	})
	return record, raw, nil
}

// Create makes the Lease. The elector does so when there is none, and starts at
// term 0, though there may have been one a moment ago.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, true, l.Interface.Create)
}

// Update takes the lease, or renews it.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, false, l.Interface.Update)
}

func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, anew bool,
	send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	// The others count from when the server has it, which is later than now and
	// earlier than the reply. The elector counts from the reply: after a slow one it
	// would lead for longer than they wait.
	sent := time.Now()
	term, err := l.admit(int64(record.LeaderTransitions), anew)
	if err != nil {
		return err
	}
	record.LeaderTransitions = int(term)
	// The elector stamps an attempt, not a request. Where the first reply was lost, the
	// second request of the attempt would write the same stamp again: the others would
	// see no renewal in it, and a server does not even store it.
	record.RenewTime = metav1.NewTime(sent)
	if err := send(ctx, record); err != nil {
		return err
	}
	l.saw(record.HolderIdentity, func() {
		l.next = max(l.next, term+1)
		if l.expire(); l.lost == nil {
			l.held, l.term, l.renewed = true, term, sent
		}
	})
	return nil
}

// admit returns the term to write, and an error when nothing may be written.
func (l *lock) admit(term int64, anew bool) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expire(); l.lost != nil {
		return 0, l.lost
	}
	l.tried = true
	if l.held {
		return l.term, nil
	}
	if anew {
		term = max(term, l.next)
	}
	// A Lease has 32 bits for it. A term beyond that was never written by a leader.
	if l.options.MinTerm != nil {
		if least := l.options.MinTerm(); least < math.MaxInt32 {
			term = max(term, least)
		}
	}
	return term, nil
}

// giveBack clears the holder, if that is us, so that another can take over at
// once. It must not be called while work is going on, nor after the lease was lost.
//
// The record is read first, and what is written rests on what was read: whoever
// took the lease meanwhile keeps it. (A conflict may also be a renewal of ours that
// was given up here and arrived there all the same.)
func (l *lock) giveBack(ctx context.Context) error {
	l.mu.Lock()
	tried := l.tried
	l.mu.Unlock()
	if !tried {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.options.RenewDeadline)
	defer cancel()
	for {
		record, _, err := l.Interface.Get(ctx)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read lease: %w", err)
		}
		if record.HolderIdentity != l.Identity() {
			return nil
		}
		now := metav1.Now()
		err = l.Interface.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaseDurationSeconds: 1, // a Lease must have one
			AcquireTime:          now,
			RenewTime:            now,
			LeaderTransitions:    record.LeaderTransitions,
		})
		if apierrors.IsConflict(err) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("clear the holder: %w", err)
		}
		l.saw("", func() {})
		return nil
	}
}

// watch returns when the lease is lost, or when stop is closed.
func (l *lock) watch(stop <-chan struct{}) {
	for {
		left, err := l.left()
		if err != nil {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-l.gone:
		case <-stop:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// left is how long work may go on without another renewal; the error is why it may
// not. It looks at the clock and not at a timer, which is late where a process was
// stopped for a while.
func (l *lock) left() (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire()
	return l.options.RenewDeadline - time.Since(l.renewed), l.lost
}

// saw notes who holds the lease, and what else the caller found out.
func (l *lock) saw(holder string, note func()) {
	l.mu.Lock()
	changed := holder != l.holder
	l.holder = holder
	note()
	l.mu.Unlock()
	if changed && l.options.OnNewLeader != nil {
		l.options.OnNewLeader(holder)
	}
}

// expire and lose are called with the mutex held.

func (l *lock) expire() {
	if l.held && time.Since(l.renewed) >= l.options.RenewDeadline {
		l.lose(fmt.Errorf("%w %s: not renewed for --leader-elect-renew-deadline=%v", ErrLost, l.Describe(), l.options.RenewDeadline))
	}
}

func (l *lock) lose(why error) {
	if l.lost == nil {
		l.lost = why
		close(l.gone)
	}
}
