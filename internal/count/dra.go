package count

import (
	"iter"

	"github.com/gpu-summary/gpu-summary-controller/internal/count/selector"
)

// DRA is the part of the world that dynamic resource allocation (resource.k8s.io)
// hands out. Without it, or in any state but synced, device plugins are counted as
// ever.
type DRA struct {
	State DRAState
	// Reason says why the state is not synced, in words that stay the same for as
	// long as it does.
	Reason  string
	Classes []*DeviceClass
	Slices  []*ResourceSlice
	Claims  []*ResourceClaim
	// Resources maps classes to the resource they count as, in addition to what
	// the classes say themselves (D5).
	Resources map[string]string
	// Selectors remembers what classes select; nil works without. It makes no
	// difference to what is counted.
	Selectors *selector.Cache
}

// NodeNames yields the node of each slice, device and claim, some of them often.
func (d *DRA) NodeNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		if d == nil {
			return
		}
		for _, s := range d.Slices {
			if s.Node != "" && !yield(s.Node) {
				return
			}
			for i := range s.Devices {
				if node := s.Devices[i].Node; node != "" && !yield(node) {
					return
				}
			}
		}
		for _, c := range d.Claims {
			if c.Node != "" && !yield(c.Node) {
				return
			}
		}
	}
}

// DRAState says whether DRA can be counted.
type DRAState string

// The states. Only synced has numbers; that there are none is known of absent
// alone.
const (
	DRAAbsent      DRAState = "absent"      // the API server does not serve resource.k8s.io/v1
	DRAUnreachable DRAState = "unreachable" // it could not be asked
	DRAForbidden   DRAState = "forbidden"   // it refuses to list or watch
	DRASyncing     DRAState = "syncing"     // it has been asked, and has not sent everything
	DRASynced      DRAState = "synced"
)

// DRAStatus is what the rows do not say of DRA.
type DRAStatus struct {
	State  DRAState `json:"state"`
	Reason string   `json:"reason,omitempty"`
	// Classes lists the classes with devices that could not be counted.
	Classes []ClassIssue `json:"classes,omitempty"`
	// Pools lists the pools with devices that are in no row, and why.
	Pools []PoolIssue `json:"pools,omitempty"`
}

// ClassIssue says that a class is not counted, or not on all devices, because its
// selectors cannot be evaluated (D5).
type ClassIssue struct {
	Class  string `json:"class"`
	Reason string `json:"reason"`
	// Devices is on how many devices they cannot, 0 when on any.
	Devices int `json:"devices,omitempty"`
}

// PoolIssue says that devices of a pool are not counted (D4).
type PoolIssue struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	// Node is where the devices are, "" if they are not on one node.
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason"`
	// Devices is how many there are, as far as that is known; Allocated how many
	// of the pool's devices claims hold.
	Devices   int `json:"devices"`
	Allocated int `json:"allocated"`
}

// DefaultDRAClasses maps the classes that vendors' DRA drivers come with, for whole
// devices, to the resource that the vendor's device plugin has for them. They are
// named as their driver is.
func DefaultDRAClasses() map[string]string {
	return map[string]string{
		"gpu.nvidia.com": NVIDIA,
		"gpu.amd.com":    "amd.com/gpu",
		"gpu.intel.com":  "gpu.intel.com/xe",
	}
}
