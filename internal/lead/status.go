package lead

import "time"

// Status is how a candidate is, for people to look at.
type Status struct {
	// Lease is its name with the namespace, and Identity what we are called in it.
	Lease, Identity string
	// Holder is who held it when it was last read or written, "" for nobody.
	Holder string
	// Leading is whether work is going on under it, and Term in which term; 0 for one
	// that never held it.
	Leading bool
	Term    int64
	// Renewed is when the last of our renewals that succeeded was sent, and RenewDeadline
	// how long after it work may go on.
	Renewed       time.Time
	RenewDeadline time.Duration
	// Lost is why it is not ours any more, nil if it is or never was.
	Lost error
}

// Status reads it.
func (l *Lead) Status() Status {
	s := Status{Lease: l.lock.Describe(), Identity: l.lock.Identity(), Leading: l.Leading(), RenewDeadline: l.lock.options.RenewDeadline}
	l.lock.mu.Lock()
	defer l.lock.mu.Unlock()
	s.Holder, s.Lost = l.lock.holder, l.lock.lost
	if l.lock.held {
		s.Term, s.Renewed = l.lock.term, l.lock.renewed
	}
	return s
}
