package queue

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Enqueuer translates changes into keys. It implements watch.Handler.
//
// It reads nothing, waits for nothing and decides nothing but whether a change
// can have changed a number. Where it is not sure it enqueues: one pass too many
// costs a millisecond, one too few leaves a wrong number until the next resync.
type Enqueuer struct {
	Queue interface{ Add(Key) }
}

// PodChanged enqueues unless the pod counts as it did before.
func (e Enqueuer) PodChanged(old, new *count.Pod) {
	if matters(old, new, (*count.Pod).Equal, func(p *count.Pod) bool { return p.Bound() || p.Pending() }) {
		e.Queue.Add(Summary)
	}
}

// NodeChanged enqueues unless the node counts as it did before. A node without
// GPUs matters when it comes and goes: pods may be bound to it.
func (e Enqueuer) NodeChanged(old, new *count.Node) {
	if matters(old, new, (*count.Node).Equal, func(*count.Node) bool { return true }) {
		e.Queue.Add(Summary)
	}
}

// SummaryChanged enqueues whenever the published ConfigMap changed, ours or not.
// An echo of our own write costs one pass that writes nothing.
func (e Enqueuer) SummaryChanged(_, _ *corev1.ConfigMap) { e.Queue.Add(Summary) }

// DeviceClassChanged enqueues unless the class counts as it did before.
func (e Enqueuer) DeviceClassChanged(old, new *count.DeviceClass) {
	if matters(old, new, (*count.DeviceClass).Equal, func(*count.DeviceClass) bool { return true }) {
		e.Queue.Add(Summary)
	}
}

// ResourceSliceChanged enqueues unless the slice counts as it did before.
func (e Enqueuer) ResourceSliceChanged(old, new *count.ResourceSlice) {
	if matters(old, new, (*count.ResourceSlice).Equal, func(*count.ResourceSlice) bool { return true }) {
		e.Queue.Add(Summary)
	}
}

// ResourceClaimChanged enqueues unless the claim holds what it held before. One
// that holds nothing may come and go.
func (e Enqueuer) ResourceClaimChanged(old, new *count.ResourceClaim) {
	if matters(old, new, (*count.ResourceClaim).Equal, (*count.ResourceClaim).Holds) {
		e.Queue.Add(Summary)
	}
}

// DRAChanged enqueues: all rows of DRA have come or gone.
func (e Enqueuer) DRAChanged() { e.Queue.Add(Summary) }

// matters decides for any kind of record: counts says whether a record can be in
// a number at all, equal whether two of them are alike.
func matters[R any](old, new *R, equal func(*R, *R) bool, counts func(*R) bool) bool {
	switch {
	case old == nil && new == nil:
		return true // a delete without a last known state
	case old == nil:
		return counts(new)
	case new == nil:
		return counts(old)
	case old == new:
		return true // a resync asks for a pass
	}
	return !equal(old, new)
}
