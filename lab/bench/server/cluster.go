package server

import (
	"fmt"
	"maps"
	"sync"
	"time"
)

// Size says how large a cluster is.
type Size struct {
	Nodes, Pods int
	// GPUPods of the pods ask for GPUs.
	GPUPods int
	// GPUNodes of the nodes have eight each.
	GPUNodes int
}

// Check refuses clusters that do not add up.
func (s Size) Check() error {
	switch {
	case s.Nodes < 1 || s.Pods < 0 || s.Nodes > 999_999 || s.Pods > 90_000_000:
		return fmt.Errorf("%d nodes and %d pods: want 1 to 999,999 and at most 90,000,000", s.Nodes, s.Pods)
	case s.GPUPods > s.Pods || s.GPUNodes > s.Nodes:
		return fmt.Errorf("%d GPU pods of %d pods, %d GPU nodes of %d nodes: a part is larger than the whole", s.GPUPods, s.Pods, s.GPUNodes, s.Nodes)
	case s.usedNodes() > s.GPUNodes:
		return fmt.Errorf("%d GPU pods need %d GPU nodes, there are %d", s.GPUPods, s.usedNodes(), s.GPUNodes)
	}
	return nil
}

// usedNodes is how many GPU nodes the GPU pods fill: four of them, with 1, 1, 2 and
// 4 GPUs, one node.
func (s Size) usedNodes() int { return (s.GPUPods + len(gpusOf) - 1) / len(gpusOf) }

var gpusOf = [4]uint8{1, 1, 2, 4}

type podKind uint8

const (
	plainPod podKind = iota
	gpuPod
	finishedPod // a GPU pod that has run to its end
	podKinds
)

// object is the state of a pod or a node; with its number it is all there is to know.
type object struct {
	version uint64
	node    uint32 // of a pod
	kind    podKind
	gpus    uint8 // asked for by a pod; 1 for a node that has some
	gone    bool
}

// table is the objects of one resource.
type table struct {
	base  func(i int) object // what number i began as
	began int                // objects there were in the beginning
	made  int                // numbers given out since
	// changed is what is not as it began. Once a reader shares it, it is copied before it is
	// written, so a list of a million pods is one state of the cluster.
	changed map[int]object
	shared  bool
}

func (t *table) get(i int) object {
	if o, ok := t.changed[i]; ok {
		return o
	}
	return t.base(i)
}

func (t *table) set(i int, o object) {
	if t.shared {
		t.changed, t.shared = maps.Clone(t.changed), false
	}
	t.changed[i] = o
}

// view is one state of a table.
type view struct {
	base    func(i int) object
	began   int
	end     int // no object has this number or a higher one
	changed map[int]object
	version uint64
	log     int // changes made before
}

func (v *view) get(i int) (object, bool) {
	if len(v.changed) > 0 {
		if o, ok := v.changed[i]; ok {
			return o, !o.gone
		}
	}
	return v.base(i), i < v.began
}

// change is something that watchers hear of.
type change struct {
	at     time.Time
	number int
	event  event
	object object
	pods   bool // else nodes
}

type event uint8

const (
	added event = iota
	modified
	deleted
	bookmark
	events
)

var eventNames = [events]string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}

const (
	firstVersion = 1_000_000_000 // of the objects in the beginning
	firstChange  = 2_000_000_000
)

// Cluster is the state that changes.
type Cluster struct {
	Size

	mu      sync.Mutex
	version uint64
	pods    table
	nodes   table
	log     []change
	moved   chan struct{} // closed, and made anew, with every change

	requested int64
	extra     map[uint32]int // pods bound to nodes that were free in the beginning
	bound     []int          // numbers of those, the oldest first
	created   []int          // pods without GPUs that were created, the oldest first
	slots     int            // GPU pods bound so far
	turn      int            // which change without GPUs is next
}

func newCluster(s Size) *Cluster {
	c := &Cluster{Size: s, version: firstChange, moved: make(chan struct{}), extra: map[uint32]int{}}
	c.pods = table{base: c.firstPod, began: s.Pods, changed: map[int]object{}}
	c.nodes = table{base: c.firstNode, began: s.Nodes, changed: map[int]object{}}
	for k := range s.GPUPods {
		c.requested += int64(gpusOf[k%len(gpusOf)])
	}
	return c
}

// firstPod is what pod number i began as. GPU pods are spread evenly over the numbers.
func (c *Cluster) firstPod(i int) object {
	o := object{version: firstVersion + uint64(i)}
	if c.Pods > 0 && i < c.Pods {
		if k := i * c.GPUPods / c.Pods; k != (i+1)*c.GPUPods/c.Pods {
			o.kind, o.gpus, o.node = gpuPod, gpusOf[k%len(gpusOf)], uint32(k/len(gpusOf))
			return o
		}
	}
	// As on most clusters, only what needs a GPU runs where there is one.
	o.node = uint32(c.GPUNodes + i%max(1, c.Nodes-c.GPUNodes))
	if c.Nodes == c.GPUNodes {
		o.node = uint32(i % c.Nodes)
	}
	return o
}

func (c *Cluster) firstNode(i int) object {
	o := object{version: firstVersion + uint64(i)}
	if i < c.GPUNodes {
		o.gpus = 1
	}
	return o
}

// view returns the present state of pods or nodes.
func (c *Cluster) view(pods bool) view {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.table(pods)
	t.shared = true
	return view{base: t.base, began: t.began, end: t.began + t.made, changed: t.changed, version: c.version, log: len(c.log)}
}

func (c *Cluster) table(pods bool) *table {
	if pods {
		return &c.pods
	}
	return &c.nodes
}

// since returns the changes from number log on, and a channel that is closed with
// the next one.
func (c *Cluster) since(log int) ([]change, <-chan struct{}, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log[log:], c.moved, c.version
}

// after returns how many changes had been made at that version; not ok if it is
// older than the cluster.
func (c *Cluster) after(version uint64) (log int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version < firstVersion {
		return 0, false
	}
	for log = len(c.log); log > 0 && c.log[log-1].object.version > version; log-- {
	}
	return log, true
}

// next gives out a resourceVersion; there is one sequence for everything, as in etcd.
func (c *Cluster) next() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	return c.version
}

// present is the version of the newest change to anything.
func (c *Cluster) present() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}
