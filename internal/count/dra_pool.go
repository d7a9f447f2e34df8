package count

import (
	"cmp"
	"fmt"

	"github.com/gpu-summary/gpu-summary-controller/internal/count/selector"
)

// problem says why nothing of a pool is counted, "" if all is well (D4). It is the
// scheduler's view: it hands out nothing from such a pool.
func (p *pool) problem() string {
	s := p.slices[0]
	if int64(len(p.slices)) != s.Of {
		return fmt.Sprintf("incomplete: %d of %d slices of generation %d", len(p.slices), s.Of, s.Generation)
	}
	if len(p.slices) == 1 {
		return "" // the API server sees to it that names are unique within a slice
	}
	seen := make(map[string]bool)
	for _, s := range p.slices {
		for i := range s.Devices {
			if seen[s.Devices[i].Name] {
				return fmt.Sprintf("invalid: two devices are called %s", s.Devices[i].Name)
			}
			seen[s.Devices[i].Name] = true
		}
	}
	return ""
}

// node is where all of a pool's devices are, "" if they are in several places.
func (p *pool) node() string {
	node := p.slices[0].Node
	for _, s := range p.slices {
		if s.Node != node && len(s.Devices) > 0 {
			return ""
		}
	}
	return node
}

// countPool counts the devices of a GPU driver's pool.
func (x *draTally) countPool(p *pool) {
	if len(p.slices) == 0 {
		return
	}
	if reason := p.problem(); reason != "" {
		issue := PoolIssue{Driver: p.driver, Pool: p.pool, Node: p.node(), Reason: reason, Allocated: len(p.held)}
		for _, s := range p.slices {
			issue.Devices += len(s.Devices)
		}
		x.status.Pools = append(x.status.Pools, issue)
		return
	}
	c := poolCount{draTally: x, pool: p}
	for _, s := range p.slices {
		c.counters = append(c.counters, s.Counters...)
	}
	for _, s := range p.slices {
		c.slice(s)
	}
	c.finish()
}

// poolCount is the count of one pool.
type poolCount struct {
	*draTally
	pool     *pool
	counters []Counter

	partitions map[rowKey][]candidate
	inUse      []*Device // devices that draw on counters and are held
	elsewhere  PoolIssue // devices that can be reached from several nodes
}

func (c *poolCount) slice(s *slice) {
	c.held = c.held[:0]
	for i := range s.Devices {
		d := &s.Devices[i]
		h := c.pool.held[d.Name]
		c.held = append(c.held, h)
		if h != nil {
			h.counted = true
		}
		if h != nil && len(d.Uses) > 0 {
			c.inUse = append(c.inUse, d)
		}
		if s.nodeOf(d) == "" {
			c.elsewhere.Devices++
			if h != nil {
				c.elsewhere.Allocated++
			}
		}
	}
	c.selected = append(c.selected[:0], c.nothing...)
	for _, class := range c.classes {
		if class.row >= 0 {
			selected, _, _ := s.selector.Select(class.selector)
			c.selected[class.row] = c.selected[class.row].Or(selected)
		}
	}
	for i, selected := range c.selected {
		if len(selected) > 0 {
			c.rowsOf(s, c.rowNames[i], selected)
		}
	}
}

// rowsOf counts the devices of a slice that are selected for a row name. One that
// is selected for several names is in the rows of each: rows of different names are
// never summed (N5).
func (c *poolCount) rowsOf(s *slice, name string, selected selector.Set) {
	var row *Row
	at := "" // where row is
	for i := range s.Devices {
		d := &s.Devices[i]
		node := s.nodeOf(d)
		if node == "" || !selected.Has(i) {
			continue
		}
		if node != at {
			at, row = node, c.draRow(node, name)
			c.noteModel(row, s.Model)
		}
		switch {
		case row != nil:
			c.device(row, d, c.held[i])
		case c.held[i] != nil:
			sum := c.sum(name)
			sum.Orphaned = add(sum.Orphaned, 1)
		}
	}
}

// device counts one device in one row (D4): what is held or tainted is not free,
// and what is both is so only once.
func (c *poolCount) device(row *Row, d *Device, h *holding) {
	if h != nil {
		c.book(row, h)
		if d.Tainted {
			row.Overcommitted++
		}
	}
	if len(d.Uses) > 0 {
		c.partition(row, d, h != nil)
		return
	}
	row.Capacity++
	if !d.Tainted {
		row.Allocatable++
		if h == nil {
			row.Free++
		}
	}
}

// noteModel names the devices of a row. The node's label goes first, as for a
// device plugin, so that a model has one name; else it is what the devices say, if
// they agree.
func (x *draTally) noteModel(row *Row, model string) {
	if row == nil {
		return
	}
	if n := x.nodes[row.Node]; n != nil && n.Model(row.Resource) != UnknownModel {
		return
	}
	if said, before := x.models[row]; before && said != model {
		model = ""
	}
	x.models[row] = model
	row.Model = cmp.Or(model, UnknownModel)
}

func (c *poolCount) finish() {
	c.countPartitions()
	if c.elsewhere.Devices > 0 {
		c.elsewhere.Driver, c.elsewhere.Pool = c.pool.driver, c.pool.pool
		c.elsewhere.Reason = "not on one node: several nodes can reach the devices"
		c.status.Pools = append(c.status.Pools, c.elsewhere)
	}
}
