package fit

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// amounts are quantities as the scheduler reckons with them: CPU in thousandths,
// everything else in whole units. What is missing is 0.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	out := make(amounts, len(list))
	for name, q := range list {
		if v := valueOf(name, q); v != 0 {
			out[name] = v
		}
	}
	return out
}

// valueOf reads a quantity without wrapping: one that does not fit is the largest
// number there is, and a negative one, which no API server stores, is none. It gets a
// copy of the quantity, whose methods may change it.
func valueOf(name corev1.ResourceName, q resource.Quantity) int64 {
	largest := int64(math.MaxInt64)
	if name == corev1.ResourceCPU {
		largest /= 1000
	}
	switch {
	case q.CmpInt64(largest) > 0:
		return math.MaxInt64
	case name == corev1.ResourceCPU:
		return max(0, q.MilliValue())
	}
	return max(0, q.Value())
}

func (a amounts) add(b amounts) {
	for name, v := range b {
		a[name] = add(a[name], v)
	}
}

// add sums numbers that are not negative, without wrapping.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// text is an amount as people write it.
func text(name corev1.ResourceName, v int64) string {
	var q *resource.Quantity
	switch name {
	case corev1.ResourceCPU:
		q = resource.NewMilliQuantity(v, resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		q = resource.NewQuantity(rounded(v), resource.BinarySI)
	default:
		q = resource.NewQuantity(v, resource.DecimalSI)
	}
	return q.String()
}

// rounded drops what nobody wants to read of a number of bytes: 67389194240 is
// 64266Mi, which is said in fewer digits.
func rounded(v int64) int64 {
	const mebi = 1 << 20
	if v < 100*mebi {
		return v
	}
	return v / mebi * mebi
}
