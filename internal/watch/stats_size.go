package watch

import (
	"reflect"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// sizeOf counts the objects of a store and estimates how many bytes they take: the
// records, the texts and lists that are theirs alone, and what the store needs for
// each (inStore). What records share, the name of a node or a list that thousands have
// in common, is left out. A test compares the result with the heap.
func sizeOf(objects []any) (kept int, bytes int64) {
	for _, obj := range objects {
		bytes += inStore
		switch o := obj.(type) {
		case interface{ size() int }:
			bytes += int64(o.size())
		case interface{ Size() int }: // of the API, where it is what is sent
			bytes += int64(o.Size())
		}
	}
	return len(objects), bytes
}

const (
	// inStore is what an object costs beside itself in the map of the store and by what
	// the informer knows it, and inIndex what its key costs in an index.
	inStore = 85
	inIndex = 85
	// devicesEncoded is what is kept of a DRA device for selectors to look at.
	devicesEncoded = 680
)

var (
	podSize, nodeSize               = structSize[podRecord](), structSize[nodeRecord]()
	classSize, sliceSize, claimSize = structSize[classRecord](), structSize[sliceRecord](), structSize[claimRecord]()
	deviceSize, counterSize         = structSize[count.Device](), structSize[count.Counter]()
	amountSize, labelSize, wordSize = structSize[count.Amount](), structSize[count.Label](), structSize[string]()
	allocatedSize                   = structSize[count.Allocated]()
	podMoreSize, podClaimSize       = structSize[count.PodMore](), structSize[count.PodClaim]()
)

func structSize[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// alone is the size of a list, unless it may be one that is shared (see shared).
func alone[T any](list []T, each int) int {
	if len(list) <= 1 {
		return 0
	}
	return cap(list) * each
}

func (r *podRecord) size() int {
	n := podSize + inIndex + len(r.Key) + len(r.resourceVersion) + alone(r.Requests, amountSize)
	if r.More == nil {
		return n
	}
	n += podMoreSize + cap(r.More.Models)*labelSize
	for _, model := range r.More.Models {
		n += len(model.Value)
	}
	if claim := r.More.Claim; claim != nil {
		n += podClaimSize + len(claim.Name) + cap(claim.Resources)*wordSize
	}
	return n
}

func (r *nodeRecord) size() int {
	n := nodeSize + len(r.Name) + len(r.resourceVersion) + cap(r.States)*wordSize +
		alone(r.Capacity, amountSize) + alone(r.Allocatable, amountSize) + alone(r.Labels, labelSize)
	if r.HasDevices() {
		n += inIndex
	}
	return n
}

func (r *classRecord) size() int {
	n := classSize + len(r.Name) + len(r.UID) + len(r.resourceVersion) + cap(r.Selectors)*wordSize
	for _, selector := range r.Selectors {
		n += len(selector)
	}
	return n
}

func (r *sliceRecord) size() int {
	n := sliceSize + len(r.Name) + len(r.UID) + len(r.resourceVersion) + len(r.Driver) + len(r.Pool) + len(r.Node) +
		cap(r.Devices)*deviceSize + cap(r.Counters)*counterSize + len(r.Devices)*devicesEncoded
	for i := range r.Devices {
		n += len(r.Devices[i].Name) + cap(r.Devices[i].Uses)*counterSize
	}
	return n
}

func (r *claimRecord) size() int {
	n := claimSize + len(r.Namespace) + len(r.Name) + len(r.UID) + len(r.resourceVersion) + cap(r.Devices)*allocatedSize
	for i := range r.Devices {
		d := &r.Devices[i]
		n += len(d.Driver) + len(d.Pool) + len(d.Device) + len(d.Class)
	}
	return n
}
