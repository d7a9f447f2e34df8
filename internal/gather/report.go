package gather

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Report is what there is to say of a reading besides the objects.
type Report struct {
	// Told is how many objects of each kind the visitor was told of.
	Told Told
	// Observed has, of each list that was read to its end, the resourceVersion at
	// which it began. A dump has none.
	Observed count.Observed
	// NodesKnown is whether all nodes that were asked for were told; of a dump,
	// whether there are any in it. Without them rows follow the pods alone.
	NodesKnown bool
	// DRA and DRAReason say whether devices of DRA drivers can be counted, as
	// count.DRA has it; "" if they were not asked for. Only with DRASynced have all
	// classes, slices and claims been told.
	DRA       count.DRAState
	DRAReason string
	// Missing has an error for each kind that was asked for, could not be read and can
	// be done without: nodes, and what DRA is made of. Some of their objects may
	// have been told.
	Missing []error

	// Ignored is how many objects of a dump are of a kind that is not read, by "Kind"
	// or "Kind.version.group".
	Ignored map[string]int
	// Broken says of the first objects of a dump that could not be read where they
	// are and why, and BrokenTotal how many there are. The others were told.
	Broken      []error
	BrokenTotal int
}

// Told is a number of objects of each kind.
type Told struct {
	Pods, Nodes, DeviceClasses, ResourceSlices, ResourceClaims int
}

// Total is the number of objects of all kinds.
func (t Told) Total() int {
	return t.Pods + t.Nodes + t.DeviceClasses + t.ResourceSlices + t.ResourceClaims
}

func (r *Report) missing(err error) {
	if err != nil {
		r.Missing = append(r.Missing, err)
	}
}

// teller tells a visitor, and counts.
type teller struct {
	to   Visitor
	told *Told
}

func (t teller) pod(pod *corev1.Pod) {
	t.told.Pods++
	t.to.Pod(pod)
}

func (t teller) node(node *corev1.Node) {
	t.told.Nodes++
	t.to.Node(node)
}

func (t teller) deviceClass(class *resourcev1.DeviceClass) {
	t.told.DeviceClasses++
	t.to.DeviceClass(class)
}

func (t teller) resourceSlice(slice *resourcev1.ResourceSlice) {
	t.told.ResourceSlices++
	t.to.ResourceSlice(slice)
}

func (t teller) resourceClaim(claim *resourcev1.ResourceClaim) {
	t.told.ResourceClaims++
	t.to.ResourceClaim(claim)
}
