package count

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// candidate is a device that draws on counters which other devices draw on too: a
// whole GPU and the partitions that could be made of it, say (D6).
type candidate struct {
	*Device
	held bool
}

type counterKey struct{ set, name string }

// partition keeps a device until all of its pool are known.
func (c *poolCount) partition(row *Row, d *Device, held bool) {
	if c.partitions == nil {
		c.partitions = make(map[rowKey][]candidate)
	}
	key := rowKey{row.Node, row.Resource, row.Source}
	c.partitions[key] = append(c.partitions[key], candidate{d, held})
}

// countPartitions counts as many of a row's partitionable devices as can be in use
// at the same time, never a device and its parts.
//
// The counters are filled from the smallest device up. That finds a set of devices
// which the scheduler could really hand out, so that no number is promised in vain;
// where devices overlap in odd ways a larger set may exist. What is free depends on
// all that is in use in the pool, in whatever row: a part of a GPU in use keeps the
// whole from being had.
func (c *poolCount) countPartitions() {
	if len(c.partitions) == 0 {
		return
	}
	total := make(map[counterKey]int64)
	for _, counter := range c.counters {
		total[counterKey{counter.Set, counter.Name}] = counter.Value
	}
	left := maps.Clone(total)
	for _, d := range c.inUse {
		for _, use := range d.Uses {
			left[counterKey{use.Set, use.Name}] -= use.Value
		}
	}
	for key, candidates := range c.partitions {
		smallestFirst(candidates, total)
		var healthy, free []candidate
		var used int64
		for _, d := range candidates {
			if d.Tainted {
				continue
			}
			healthy = append(healthy, d)
			if d.held {
				used++
			} else {
				free = append(free, d)
			}
		}
		row := c.row(key)
		fits := fill(free, left)
		// What is in use and what fits beside it can be in use at the same time
		// too, though it may not be the set that filling finds.
		allocatable := max(fill(healthy, total), used+fits)
		row.Free = add(row.Free, fits)
		row.Allocatable = add(row.Allocatable, allocatable)
		row.Capacity = add(row.Capacity, max(fill(candidates, total), allocatable))
		row.Blocked = add(row.Blocked, allocatable-used-fits)
	}
}

// smallestFirst sorts devices by the share of the counters that they take.
func smallestFirst(candidates []candidate, total map[counterKey]int64) {
	size := func(c candidate) (sum float64) {
		for _, use := range c.Uses {
			if all := total[counterKey{use.Set, use.Name}]; all > 0 {
				sum += float64(use.Value) / float64(all)
			}
		}
		return sum
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(size(a), size(b)), strings.Compare(a.Name, b.Name))
	})
}

// fill counts the devices that fit into the counters one after the other.
func fill(candidates []candidate, counters map[counterKey]int64) (n int64) {
	left := maps.Clone(counters)
	for _, c := range candidates {
		if !slices.ContainsFunc(c.Uses, func(u Counter) bool { return left[counterKey{u.Set, u.Name}] < u.Value }) {
			for _, u := range c.Uses {
				left[counterKey{u.Set, u.Name}] -= u.Value
			}
			n++
		}
	}
	return n
}
