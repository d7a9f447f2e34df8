package watch

import (
	"errors"

	"k8s.io/client-go/tools/cache"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// byNode indexes the pods that count by the node they are bound to, and those
// that wait under unbound: a pass asks which nodes there are pods on.
const (
	byNode  = "byNode"
	unbound = ""
)

var podIndexers = cache.Indexers{byNode: func(obj any) ([]string, error) {
	pod, ok := obj.(*podRecord)
	switch {
	case ok && pod.Bound():
		return []string{pod.Node}, nil
	case ok && pod.Pending():
		return []string{unbound}, nil
	}
	return nil, nil
}}

// byDevices indexes the nodes that have devices, under a single value.
const (
	byDevices   = "byDevices"
	withDevices = ""
)

var nodeIndexers = cache.Indexers{byDevices: func(obj any) ([]string, error) {
	if node, ok := obj.(*nodeRecord); ok && node.HasDevices() {
		return []string{withDevices}, nil
	}
	return nil, nil
}}

// readAttempts bounds how often World reads again because a store moved on under
// it. One read takes well under a millisecond per thousand GPU pods.
const readAttempts = 16

// ErrMoving is returned by World when the stores changed during every attempt.
// The next pass will do.
var ErrMoving = errors.New("caches kept changing while they were read")

// World reads all stores. What it returns is exactly the state at the
// resourceVersions in Observed: the versions are read before and after, and the
// whole is read again if one of them moved.
func (w *Watch) World() (count.World, error) {
	for range readAttempts {
		before := w.versions((*source).version)
		dra := w.dra.world()
		world := count.World{
			Pods:       w.countedPods(),
			Nodes:      w.relevantNodes(dra),
			NodesKnown: w.nodes != nil,
			DRA:        dra,
			Observed:   before,
			Complete:   w.versions((*source).complete),
		}
		if w.versions((*source).version) == before {
			return world, nil
		}
	}
	return count.World{}, ErrMoving
}

// versions asks every store that is read for one of its versions.
func (w *Watch) versions(of func(*source) string) count.Observed {
	o := count.Observed{Pods: of(w.pods)}
	if w.nodes != nil {
		o.Nodes = of(w.nodes)
	}
	w.dra.observe(&o, of)
	return o
}

// countedPods is the whole store: what does not count is not kept.
func (w *Watch) countedPods() []*count.Pod {
	objs := w.pods.informer.GetIndexer().List()
	pods := make([]*count.Pod, 0, len(objs))
	for _, obj := range objs {
		pods = append(pods, &obj.(*podRecord).Pod)
	}
	return pods
}

// relevantNodes are those with devices and, of all others, those that something
// which counts is on: a pass does not touch the hundred thousand that are neither.
func (w *Watch) relevantNodes(dra *count.DRA) []*count.Node {
	if w.nodes == nil {
		return nil
	}
	indexer := w.nodes.informer.GetIndexer()
	objs, _ := indexer.ByIndex(byDevices, withDevices)
	nodes := make([]*count.Node, 0, len(objs))
	for _, obj := range objs {
		nodes = append(nodes, obj.(*nodeRecord).record())
	}
	add := func(name string) {
		if obj, exists, _ := indexer.GetByKey(name); exists {
			if node := obj.(*nodeRecord).record(); !node.HasDevices() {
				nodes = append(nodes, node)
			}
		}
	}
	for _, name := range w.pods.informer.GetIndexer().ListIndexFuncValues(byNode) {
		add(name) // no node is called like the bucket of pods that wait
	}
	for name := range dra.NodeNames() {
		add(name)
	}
	return nodes
}
