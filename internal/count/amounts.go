package count

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount is a number of devices of one resource. Value is in devices, never in
// thousandths.
type Amount struct {
	Resource string
	Value    int64
}

// Amounts holds at most one Amount per resource, sorted by resource name and
// without zeroes, so that equal amounts are equal slices. A pod or a node has
// one or two entries; a map would cost more than it holds.
type Amounts []Amount

// Of returns the amount of the named resource, 0 when there is none.
func (a Amounts) Of(resource string) int64 {
	for _, x := range a {
		if x.Resource == resource {
			return x.Value
		}
	}
	return 0
}

// Equal reports whether both hold the same amounts.
func (a Amounts) Equal(b Amounts) bool { return slices.Equal(a, b) }

// amountsOf picks the GPU resources out of a resource list.
//
// The quantity is copied out of the map before it is read: several of
// Quantity's reading methods cache their result in the receiver, and the list
// may belong to an object that others share. Value rounds up (R11).
func amountsOf(list corev1.ResourceList, match func(resource string) bool) Amounts {
	var out Amounts
	for name, q := range list {
		if !match(string(name)) {
			continue
		}
		if v := valueOf(q); v != 0 {
			out = append(out, Amount{Resource: string(name), Value: v})
		}
	}
	slices.SortFunc(out, func(x, y Amount) int { return cmp.Compare(x.Resource, y.Resource) })
	return out
}

// valueOf reads a quantity without wrapping (R11): the sum of a pod's containers
// may be beyond 64 bits, and an API server accepts such a pod. Value would give what
// is left of it, which can be negative; so does the scheduler's NodeInfo.
func valueOf(q resource.Quantity) int64 {
	if q.CmpInt64(math.MaxInt64) > 0 {
		return math.MaxInt64
	}
	return q.Value()
}

// add sums without wrapping: a total that no longer fits stays at the largest
// number there is (R11). One malformed quantity must not turn a cluster's
// total negative.
func add(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// mul multiplies numbers that are not negative, without wrapping.
func mul(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
