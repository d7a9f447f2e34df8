// Package diff lets kube-scheduler judge our counting.
//
// It makes random pods, gives them to the scheduler's own NodeInfo and to
// internal/count, and compares what is requested of each resource on each node.
// The generator covers what people write (init containers, sidecars, resizes,
// finished and terminating pods) and what nobody should (negative, fractional and
// enormous quantities, a GPU where only cpu may stand): wherever the scheduler has
// an answer, ours has to be the same.
//
// There is one exception. NodeInfo adds with a plain +=, and the Value of a Quantity
// beyond 64 bits is its low bits: the scheduler's sums wrap and turn negative, and
// ours stay at the largest number (R11). A pod with enormous quantities is therefore
// bound to a node of its own, where the scheduler's number is corrected.
//
// The scheduler's feature gates are those of a release's defaults.
package diff
