package watch

import (
	"errors"

	"k8s.io/client-go/tools/cache"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// byNode indexes the pods that count by the node they are bound to, and those
// that wait under unbound. Pods that ask for no GPU and pods that have finished
// are in no bucket: a pass touches only what it counts.
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
		world := count.World{
			Pods:       w.countedPods(),
			Nodes:      w.allNodes(),
			NodesKnown: w.nodes != nil,
			DRA:        w.dra.world(),
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

func (w *Watch) countedPods() []*count.Pod {
	indexer := w.pods.informer.GetIndexer()
	var pods []*count.Pod
	for _, node := range indexer.ListIndexFuncValues(byNode) {
		// The index exists: it was given to the informer's constructor.
		objs, _ := indexer.ByIndex(byNode, node)
		for _, obj := range objs {
			pods = append(pods, obj.(*podRecord).record())
		}
	}
	return pods
}

func (w *Watch) allNodes() []*count.Node {
	if w.nodes == nil {
		return nil
	}
	objs := w.nodes.informer.GetIndexer().List()
	nodes := make([]*count.Node, 0, len(objs))
	for _, obj := range objs {
		nodes = append(nodes, obj.(*nodeRecord).record())
	}
	return nodes
}
