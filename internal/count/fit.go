package count

import (
	"maps"
	"slices"
)

// podSizes are the sizes of pods for which it is worth knowing how many fit. The
// size of the largest node is added.
var podSizes = []int64{1, 2, 4, 8}

// part is a set of rows: those of one model, or all of a resource.
type part struct {
	Numbers
	nodes   int
	last    string        // the node of the row before
	largest int64         // allocatable of the largest node
	usable  map[int64]int // nodes by usable free devices
	free    map[int64]int // nodes by free devices
}

func (p *part) include(r Row) {
	if p.free == nil {
		p.usable, p.free = make(map[int64]int), make(map[int64]int)
	}
	p.Numbers.include(r.Numbers)
	if r.Node != p.last {
		p.nodes++
		p.last = r.Node
	}
	p.largest = max(p.largest, r.Allocatable)
	p.usable[r.UsableFree]++
	p.free[r.Free]++
}

// fit says how many pods of each size could start now. It goes by the histogram:
// a cluster has many nodes but few different numbers of free devices.
func (p *part) fit() Fit {
	var f Fit
	sizes := slices.Clone(podSizes)
	if p.largest > 0 && !slices.Contains(sizes, p.largest) {
		sizes = append(sizes, p.largest)
		slices.Sort(sizes)
	}
	for _, size := range sizes {
		var placeable int64
		for free, nodes := range p.usable {
			placeable = add(placeable, mul(free/size, int64(nodes)))
		}
		f.Sizes = append(f.Sizes, Size{Devices: size, Placeable: placeable, Stranded: max(0, p.Free-mul(size, placeable))})
	}
	for free := range p.usable {
		f.LargestFree = max(f.LargestFree, free)
	}
	for _, free := range slices.Sorted(maps.Keys(p.free)) {
		f.Histogram = append(f.Histogram, Bucket{Free: free, Nodes: p.free[free]})
	}
	return f
}
