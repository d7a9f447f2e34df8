package count

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count/selector"
)

// draTally is the count of what DRA hands out.
type draTally struct {
	*tally
	*DRA
	status *DRAStatus

	classes    []*class // those whose selectors compile, by name
	slices     []slice
	resources  map[string]string
	gpuDrivers map[string]bool
	rowNames   []string
	pools      map[poolKey]*pool
	pods       map[objectKey]*Pod // by the claim that was made for them
	models     map[*Row]string    // what devices say of their model

	// Of the slice in hand: who holds each device, and what is selected for each
	// row name. Kept between slices because there are so many.
	held     []*holding
	selected []selector.Set
	nothing  []selector.Set
}

type poolKey struct{ driver, pool string }

type objectKey struct{ namespace, name string }

// pool is a driver's pool of devices in its newest generation, and what claims hold
// of it.
type pool struct {
	poolKey
	slices []*slice
	held   map[string]*holding
}

// holding is a device that at least one claim holds. If several do, as with shares
// of it, it is booked on the first of them by name.
type holding struct {
	claim *ResourceClaim
	Allocated
	counted bool
}

// beginDRA prepares for counting DRA. The result is nil when it is not synced;
// what pods say of it is then all there is. done is to be called at the end.
func (t *tally) beginDRA() (x *draTally, done func()) {
	d := t.world.DRA
	if d == nil {
		return nil, func() {}
	}
	t.draStatus = &DRAStatus{State: d.State, Reason: d.Reason}
	if d.State != DRASynced {
		return nil, func() {}
	}
	cache := d.Selectors
	if cache == nil {
		cache = &selector.Cache{}
	}
	pass := cache.Begin()
	t.implicit = make(map[string]string)
	x = &draTally{
		tally: t, DRA: d, status: t.draStatus,
		resources: make(map[string]string), gpuDrivers: make(map[string]bool),
		pools: make(map[poolKey]*pool), pods: make(map[objectKey]*Pod),
		models: make(map[*Row]string),
	}
	x.resolve()
	x.compile(pass)
	x.findDrivers()
	x.findClasses()
	x.nothing = make([]selector.Set, len(x.rowNames))
	return x, pass.End
}

// count adds the rows.
func (x *draTally) count() {
	for _, p := range x.world.Pods {
		if claim := p.Claim(); claim != nil {
			x.pods[objectKey{p.Namespace(), claim.Name}] = p
		}
	}
	x.collectSlices()
	x.collectHoldings()
	for _, p := range x.pools {
		if x.gpuDrivers[p.driver] {
			x.countPool(p)
		}
		x.countLeftovers(p)
	}
	slices.SortFunc(x.status.Pools, func(a, b PoolIssue) int {
		return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Pool, b.Pool),
			strings.Compare(a.Node, b.Node), strings.Compare(a.Reason, b.Reason))
	})
}

func (x *draTally) pool(key poolKey) *pool {
	p := x.pools[key]
	if p == nil {
		p = &pool{poolKey: key}
		x.pools[key] = p
	}
	return p
}

// collectSlices puts the slices of each pool's newest generation together (D4).
func (x *draTally) collectSlices() {
	for i := range x.slices {
		s := &x.slices[i]
		p := x.pool(poolKey{s.Driver, s.Pool})
		switch {
		case len(p.slices) == 0 || s.Generation == p.slices[0].Generation:
			p.slices = append(p.slices, s)
		case s.Generation > p.slices[0].Generation:
			p.slices = append(p.slices[:0], s)
		}
	}
}

// collectHoldings makes one holding of each device that claims hold, however many
// do and whoever has reserved them (D3).
func (x *draTally) collectHoldings() {
	for _, c := range x.Claims {
		for _, a := range c.Devices {
			p := x.pool(poolKey{a.Driver, a.Pool})
			if p.held == nil {
				p.held = make(map[string]*holding)
			}
			if h := p.held[a.Device]; h == nil || first(c, h.claim) {
				p.held[a.Device] = &holding{claim: c, Allocated: a}
			}
		}
	}
}

func first(c, d *ResourceClaim) bool {
	return cmp.Or(strings.Compare(c.Namespace, d.Namespace), strings.Compare(c.Name, d.Name)) < 0
}

// countLeftovers books devices that are held but not, or no longer, offered: their
// driver is being replaced, or its pool is incomplete. They are in use all the
// same, as devices are whose device plugin went away (N2). Where they are and what
// they are, the claim says.
func (x *draTally) countLeftovers(p *pool) {
	if len(p.slices) > 0 && !x.gpuDrivers[p.driver] {
		return
	}
	missing, nodes := 0, make(map[string]int)
	for _, h := range p.held {
		name := x.resources[h.Class]
		if name == "" && x.gpuDrivers[p.driver] {
			name = h.Class
		}
		if h.counted || name == "" {
			continue
		}
		nodes[h.claim.Node]++
		missing++
		if row := x.draRow(h.claim.Node, name); row != nil {
			row.Overcommitted++
			x.book(row, h)
		} else if h.claim.Node != "" {
			sum := x.sum(name)
			sum.Orphaned = add(sum.Orphaned, 1)
		}
	}
	if missing == 0 || len(p.slices) > 0 {
		return // if there are slices, whatever is wrong with them has been reported
	}
	issue := PoolIssue{Driver: p.driver, Pool: p.pool, Reason: "no slices", Allocated: missing}
	for node := range nodes {
		if len(nodes) == 1 {
			issue.Node = node
		}
	}
	x.status.Pools = append(x.status.Pools, issue)
}

// draRow finds or makes a row; there is none for a node that does not exist, and
// for devices that are on no node in particular.
func (x *draTally) draRow(node, name string) *Row {
	if node == "" || x.world.NodesKnown && x.nodes[node] == nil {
		return nil
	}
	return x.row(rowKey{node, name, DynamicResources})
}

// book counts a held device as requested, by the claim that holds it.
func (x *draTally) book(row *Row, h *holding) {
	row.Requested++
	sum := x.sum(row.Resource)
	band := bandUnknown
	if pod := x.pods[objectKey{h.claim.Namespace, h.claim.Name}]; pod != nil {
		band = bandOf(pod.Priority)
	}
	for _, s := range []*Share{share(sum.namespaces, h.claim.Namespace), share(sum.priorities, band)} {
		s.Requested = add(s.Requested, 1)
	}
}
