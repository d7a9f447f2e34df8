package publish

import (
	"fmt"
	"strconv"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Annotations of the published ConfigMap. Values are decimal numbers of devices
// unless said otherwise.
const (
	prefix = "gpu-summary/"

	// AnnotationResource names the resource that the ConfigMap counts.
	AnnotationResource = prefix + "resource"
	// AnnotationRequested is the sum of all rows.
	AnnotationRequested = prefix + "requested"
	// AnnotationAllocatable is the number of healthy devices. It is absent, like
	// free, overcommitted and orphaned, when nodes are not watched.
	AnnotationAllocatable = prefix + "allocatable"
	// AnnotationFree sums what each node could still give.
	AnnotationFree = prefix + "free"
	// AnnotationOvercommitted sums what is requested beyond allocatable.
	AnnotationOvercommitted = prefix + "overcommitted"
	// AnnotationOrphaned is requested by pods whose node does not exist.
	AnnotationOrphaned = prefix + "orphaned"
	// AnnotationPending is asked for by pods that wait for a node.
	AnnotationPending = prefix + "pending"
	// AnnotationObserved says what the numbers were computed from:
	// "pods@123 nodes@120", a resourceVersion for each store. It is never a reason
	// to write.
	AnnotationObserved = prefix + "observed"
)

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	manager        = "gpu-summary-controller"
)

// content is what the ConfigMap should say. All of it is compared with what is
// there, but for observed, which changes with every pod in the cluster.
type content struct {
	data        map[string]string
	annotations map[string]string
	observed    string
}

// render turns a snapshot into content. Equal counts give equal content.
func render(snap *count.Snapshot, resource string) content {
	sum := snap.Of(resource)
	c := content{
		data: make(map[string]string, sum.Nodes),
		annotations: map[string]string{
			AnnotationResource:  resource,
			AnnotationRequested: number(sum.Requested),
			AnnotationPending:   number(sum.Pending.Devices),
		},
		observed: "pods@" + snap.Observed.Pods,
	}
	for _, row := range snap.Rows {
		if row.Resource == resource {
			c.data[row.Node] = number(row.Requested)
		}
	}
	if snap.NodesKnown {
		c.annotations[AnnotationAllocatable] = number(sum.Allocatable)
		c.annotations[AnnotationFree] = number(sum.Free)
		c.annotations[AnnotationOvercommitted] = number(sum.Overcommitted)
		c.annotations[AnnotationOrphaned] = number(sum.Orphaned)
		c.observed = fmt.Sprintf("%s nodes@%s", c.observed, snap.Observed.Nodes)
	}
	return c
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
