package page

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// totals are the numbers above everything else.
func (o overview) totals() []tile {
	requested := tile{Label: "Requested", ID: "requested", Number: o.Sum.Requested, Small: "as kube-scheduler counts"}
	pending := pendingTile(o.Sum)
	pending.ID = "pending"
	if !o.NodesKnown {
		return []tile{requested, pending}
	}
	healthy := "on " + Plural(o.Sum.Nodes, "node")
	if o.Sum.Allocatable < o.Sum.Capacity {
		healthy = "of " + Number(o.Sum.Capacity) + ", the rest unhealthy"
	}
	over := o.Sum.Overcommitted != 0
	all := []tile{
		{Label: "Allocatable", ID: "allocatable", Number: o.Sum.Allocatable, Small: healthy},
		requested,
		{Label: "Usable free", ID: "usable", Number: o.Sum.UsableFree, Small: "of " + Number(o.Sum.Free) + " free"},
		pending,
		{Label: "Largest pod", Number: o.Sum.Fit.LargestFree, Small: "that could start now"},
		{Label: "Overcommitted", ID: "overcommitted", Number: o.Sum.Overcommitted, Small: either(over, "requested of devices that are gone", "none"), Bad: over},
	}
	if o.Sum.Orphaned != 0 {
		all = append(all, tile{Label: "Orphaned", ID: "orphaned", Number: o.Sum.Orphaned, Small: "by pods whose node is gone", Bad: true})
	}
	return all
}

func pendingTile(sum count.Summary) tile {
	return tile{Label: "Pending", Number: sum.Pending.Devices, Small: "asked for by " + Plural(sum.Pending.Pods, "pod")}
}

// blindness says what is not known, and why.
func (o overview) blindness() g.Node {
	return g.If(!o.NodesKnown, h.P(h.Class("note"),
		g.Text("Nodes are not watched ("), h.Code(g.Text("--watch-nodes=false")), g.Text("). Only what is requested and what waits is known.")))
}

// draTrouble says which devices of DRA are in no number.
func (o overview) draTrouble() g.Node {
	d := o.DRA
	if d == nil || len(d.Classes) == 0 && len(d.Pools) == 0 && (d.State == count.DRASynced || d.State == count.DRAAbsent) {
		return nil
	}
	says := "Dynamic resource allocation is " + string(d.State)
	if d.Reason != "" {
		says += ": " + d.Reason
	}
	says += "."
	if n := len(d.Classes); n > 0 {
		says += " " + Plural(n, "device class") + " cannot be counted in full."
	}
	if n := len(d.Pools); n > 0 {
		says += " " + Plural(n, "pool") + " with devices in no number."
	}
	return h.P(h.Class("note"), g.Text(says))
}
