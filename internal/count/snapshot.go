package count

import "iter"

// World is everything one pass looks at.
type World struct {
	// Pods may hold pods that do not count; Take leaves them out.
	Pods []*Pod
	// Nodes has every node of the cluster that has devices or that a pod, a slice or a
	// claim is on; others may be there. Without NodesKnown it is empty and means
	// nothing: rows then follow the pods alone.
	Nodes      []*Node
	NodesKnown bool
	// DRA is nil when it was not asked for.
	DRA *DRA
	// Observed is the last change in each store, Complete the version up to which
	// each has all there was. The second moves on while nothing changes; it is empty
	// if nobody keeps it, and the first stands for it.
	Observed Observed
	Complete Observed
}

// Observed names the resourceVersion of every store a pass was computed from,
// "" for a store that was not read. Two of them compare only within one
// resource.
type Observed struct {
	Pods  string `json:"pods,omitempty"`
	Nodes string `json:"nodes,omitempty"`
	// The stores of DRA.
	Classes string `json:"deviceclasses,omitempty"`
	Slices  string `json:"resourceslices,omitempty"`
	Claims  string `json:"resourceclaims,omitempty"`
}

// Snapshot is the answer of one pass. It is never changed after Take. All
// numbers are devices, unless the name says pods or nodes; of shared devices they
// are slots (N5).
type Snapshot struct {
	Observed Observed `json:"observed"`
	// Complete is never published: it moves on while nothing changes.
	Complete Observed `json:"-"`
	// NodesKnown is false when nodes were not watched. Capacity, Allocatable,
	// Free, Overcommitted, Orphaned and all that follows from them are then 0 and
	// mean nothing.
	NodesKnown bool `json:"nodesKnown"`
	// Summaries has one entry for each resource that a node has or a pod asks
	// for, sorted by name. Resources are never summed with each other (N5).
	Summaries []Summary `json:"resources"`
	// Rows has an entry for each node, resource and source where capacity,
	// allocatable or requested is above zero (N1), sorted in that order.
	Rows []Row `json:"-"`
	// DRA says whether devices of DRA are in the numbers, and which are not; nil
	// when they were not asked for.
	DRA *DRAStatus `json:"dra,omitempty"`
}

// Source is where a node's devices come from.
type Source string

// The sources (D2).
const (
	// DevicePlugin: a device plugin reports the number, and the kubelet puts it into
	// the node's status.
	DevicePlugin Source = "device-plugin"
	// DynamicResources: a DRA driver lists the devices in ResourceSlices, and
	// ResourceClaims hold them.
	DynamicResources Source = "dra"
)

// Row is one node's numbers for one resource.
type Row struct {
	Node     string `json:"node"`
	Resource string `json:"resource"`
	Source   Source `json:"source"`
	// Model is the product as the vendor's label names it (N4).
	Model string `json:"model"`
	// Replicas is how many slots share a device, 0 when devices are not shared.
	Replicas int64 `json:"replicas,omitempty"`
	// States is why free devices cannot be had, empty when they can (N3).
	States []State `json:"states,omitempty"`
	Numbers
	// Claimed is what kube-scheduler charges a device plugin's row in addition to
	// Requested: for pods that hold their devices through a claim, and so have them
	// in the row of source dra. It happens when a device plugin comes back to a node
	// where DRA has served pods meanwhile. Free has it taken off (D2).
	Claimed int64 `json:"claimed,omitempty"`
	// Blocked is how many healthy devices of a row of source dra are not in use and
	// cannot be had, because a device that they are part of, or a part of theirs, is
	// in use (D6).
	Blocked int64 `json:"blocked,omitempty"`
}

// Numbers is what there is to say of a node, a model or a whole cluster.
type Numbers struct {
	// Capacity counts all devices, Allocatable the healthy ones (N1).
	Capacity    int64 `json:"capacity"`
	Allocatable int64 `json:"allocatable"`
	// Requested is what kube-scheduler's NodeInfo.Requested holds (R1, R6); of DRA
	// it is the devices that claims hold (D3).
	Requested int64 `json:"requested"`
	// Free is what a node could still give, never negative (N2). A sum of it is
	// over nodes: free devices here do not make up for too few there.
	Free int64 `json:"free"`
	// UsableFree is the part of Free on nodes that take pods (N3).
	UsableFree int64 `json:"usableFree"`
	// Overcommitted is what is requested beyond allocatable: devices that turned
	// unhealthy, or a device plugin that went away, under running pods (N2).
	Overcommitted int64 `json:"overcommitted"`
}

// Summary is all there is to say about one resource across the cluster.
type Summary struct {
	Resource string `json:"resource"`
	// Numbers is over all rows, whatever their source: a GPU is a GPU.
	Numbers
	// Sources splits it by source. It is empty when device plugins are the only
	// one.
	Sources []SourcePart `json:"sources,omitempty"`
	// Orphaned is requested by pods bound to a node that does not exist. It is
	// in no row and in no other number (R3).
	Orphaned int64   `json:"orphaned"`
	Pending  Pending `json:"pending"`
	// Nodes is the number of nodes with a row.
	Nodes      int     `json:"nodes"`
	Fit        Fit     `json:"fit"`
	Models     []Model `json:"models"`
	Namespaces []Share `json:"namespaces"`
	Priorities []Share `json:"priorities"`
}

// SourcePart is the part of a resource that comes from one source.
type SourcePart struct {
	Source Source `json:"source"`
	Nodes  int    `json:"nodes"`
	Numbers
}

// Model is the part of a resource that is of one product.
type Model struct {
	Name  string `json:"model"`
	Nodes int    `json:"nodes"`
	Numbers
	// Pending is what pods ask for that wait for this model and no other (P2).
	Pending int64 `json:"pending"`
	Fit     Fit   `json:"fit"`
}

// Pending is demand that waits for a node (P1).
type Pending struct {
	Devices int64 `json:"devices"`
	Pods    int   `json:"pods"`
	// Reasons has an entry for each reason that occurs, in the order of Waits.
	Reasons []Reason `json:"reasons"`
	// Shapes says how many pods ask for how many devices, smallest first.
	Shapes []Shape `json:"shapes"`
	// Of Devices, AnyModel is asked for by pods that name no model, SeveralModels by
	// pods that would take any of several that there are, and AbsentModel by pods that
	// name only such as no node has. The rest is in Model.Pending (P2).
	AnyModel      int64 `json:"anyModel"`
	SeveralModels int64 `json:"severalModels"`
	AbsentModel   int64 `json:"absentModel"`
}

// Reason is the part of the waiting demand that waits for one reason.
type Reason struct {
	Wait    Wait  `json:"reason"`
	Devices int64 `json:"devices"`
	Pods    int   `json:"pods"`
}

// Shape is a number of pods that ask for equally many devices each.
type Shape struct {
	Devices int64 `json:"devices"`
	Pods    int   `json:"pods"`
}

// Share is what one namespace, or one band of priorities, holds and waits for.
type Share struct {
	Name      string `json:"name"`
	Requested int64  `json:"requested"`
	Pending   int64  `json:"pending"`
}

// Fit says what would fit, which the number of free devices alone does not.
type Fit struct {
	// LargestFree is the most usable free devices on one node: the largest pod
	// that could start now.
	LargestFree int64 `json:"largestFree"`
	// Sizes has an entry for pods of 1, 2, 4 and 8 devices and of the largest
	// node, smallest first.
	Sizes []Size `json:"sizes"`
	// Histogram says how many nodes have how many devices free, fewest first.
	Histogram []Bucket `json:"histogram"`
}

// Size is what would fit of pods that ask for Devices each.
type Size struct {
	Devices int64 `json:"devices"`
	// Placeable is how many such pods could start now, one node after another.
	Placeable int64 `json:"placeable"`
	// Stranded is how many free devices would then be left over, on nodes with
	// too few of them or on nodes that take no pods.
	Stranded int64 `json:"stranded"`
}

// Bucket is a number of nodes with equally many free devices.
type Bucket struct {
	Free  int64 `json:"free"`
	Nodes int   `json:"nodes"`
}

// RequestedByNode yields each node with a row of the resource, in order, and what
// is requested there of all sources together.
func (s *Snapshot) RequestedByNode(resource string) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		var node string
		var requested int64
		for i := range s.Rows {
			switch row := &s.Rows[i]; {
			case row.Resource != resource:
			case row.Node == node: // rows of one node are next to each other
				requested = add(requested, row.Requested)
			case node != "" && !yield(node, requested):
				return
			default:
				node, requested = row.Node, row.Requested
			}
		}
		if node != "" {
			yield(node, requested)
		}
	}
}

// Of returns the summary of a resource, an empty one when there is none of it.
func (s *Snapshot) Of(resource string) Summary {
	for _, sum := range s.Summaries {
		if sum.Resource == resource {
			return sum
		}
	}
	return Summary{Resource: resource}
}

func (n *Numbers) include(m Numbers) {
	n.Capacity = add(n.Capacity, m.Capacity)
	n.Allocatable = add(n.Allocatable, m.Allocatable)
	n.Requested = add(n.Requested, m.Requested)
	n.Free = add(n.Free, m.Free)
	n.UsableFree = add(n.UsableFree, m.UsableFree)
	n.Overcommitted = add(n.Overcommitted, m.Overcommitted)
}
