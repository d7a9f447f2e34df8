package diff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// DRAReport says what the scheduler did and where the two sides differ.
type DRAReport struct {
	Seed  uint64 `json:"seed"`
	Nodes int    `json:"nodes"`
	// DRADevices is what the pools offer, and PluginDevices what device plugins have
	// to allocate.
	DRADevices    int   `json:"draDevices"`
	PluginDevices int64 `json:"pluginDevices"`
	// PodsCreated of which some were deleted; those left are bound or waiting.
	// Served are those bound whose extended resource comes from DRA.
	PodsCreated int `json:"podsCreated"`
	Bound       int `json:"podsBound"`
	Served      int `json:"podsServedByDRA"`
	Waiting     int `json:"podsWaiting"`
	// Allocated is how many claims hold something, and Shared how many of them for
	// several pods.
	Allocated int `json:"claimsAllocated"`
	Shared    int `json:"claimsShared"`
	// Results is how many devices the claims' allocations name, administration and
	// shares included; DevicesAllocated how many different ones they hold.
	Results          int `json:"allocationResults"`
	DevicesAllocated int `json:"devicesAllocated"`
	// States is how often the scheduler had settled and everything was compared, Rows
	// how many there were in all of them. The other numbers are of the last.
	States     int           `json:"states"`
	Rows       int           `json:"rows"`
	Mismatches int           `json:"mismatches"`
	Seconds    float64       `json:"seconds"`
	Found      []DRAMismatch `json:"found,omitempty"`
}

// describe fills in what is not compared.
func (r *DRAReport) describe(o *DRAObjects) {
	r.PluginDevices, r.Bound, r.Served, r.Waiting, r.Allocated, r.Results, r.Shared = 0, 0, 0, 0, 0, 0, 0
	r.Nodes, r.DRADevices = len(o.Nodes), len(draOffered(o))
	for i := range o.Nodes {
		q := o.Nodes[i].Status.Allocatable[count.NVIDIA]
		r.PluginDevices += q.Value()
	}
	for i := range o.Pods {
		switch pod := &o.Pods[i]; {
		case pod.Spec.NodeName == "":
			r.Waiting++
		case pod.Status.ExtendedResourceClaimStatus != nil:
			r.Served++
			r.Bound++
		default:
			r.Bound++
		}
	}
	for i := range o.Claims {
		status := &o.Claims[i].Status
		if status.Allocation == nil {
			continue
		}
		r.Allocated++
		r.Results += len(status.Allocation.Devices.Results)
		if len(status.ReservedFor) > 1 {
			r.Shared++
		}
	}
}

// Write writes the report.
func (r *DRAReport) Write(w io.Writer, format Format) error {
	if format == JSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	var b strings.Builder
	for _, m := range r.Found {
		fmt.Fprintf(&b, "Mismatch with %s: %s: %s is %d, we say %d\n", m.When, m.where(), m.Number, m.Scheduler, m.Ours)
	}
	fmt.Fprintf(&b, "%d nodes with %d devices of DRA and %d of device plugins\n", r.Nodes, r.DRADevices, r.PluginDevices)
	fmt.Fprintf(&b, "%d pods created, %d deleted again; %d bound (%d served by DRA as an extended resource), %d waiting\n",
		r.PodsCreated, r.PodsCreated-r.Bound-r.Waiting, r.Bound, r.Served, r.Waiting)
	fmt.Fprintf(&b, "%d devices allocated by the scheduler, in %d results of %d claims, %d of them shared by pods\n",
		r.DevicesAllocated, r.Results, r.Allocated, r.Shared)
	fmt.Fprintf(&b, "%d rows compared in %d settled states, %d mismatches; %.0f s, seed %d\n", r.Rows, r.States, r.Mismatches, r.Seconds, r.Seed)
	_, err := io.WriteString(w, b.String())
	return err
}

func (k DRAKey) where() string {
	if k.Node == "" {
		return k.Resource + " in total"
	}
	return fmt.Sprintf("%s on %s, source %s", k.Resource, k.Node, cmp.Or(string(k.Source), "none"))
}
