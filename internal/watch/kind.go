package watch

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// record is what any of the records is.
type record interface {
	cache.Object
	runtime.Object
}

// kind is how objects of one kind become records of type R.
type kind[R record] struct {
	resource string // plural, as RBAC and paths name it
	name     string // "Pod"
	// evidence has to be found in an object before it is decoded; nil decodes all.
	evidence *evidence
	// shape is what the record is made from.
	shape *shape
	// decode decodes what is left of an object after cutting.
	decode func(message []byte) (R, error)
	// trim makes a record of an object that somebody else has decoded.
	trim func(runtime.Object) (R, error)
	// mark makes what is left of an object that is gone or, without a name, the
	// bookmark that ends the initial events.
	mark func(id identity) R
	// counts decides whether a record is worth keeping, nil keeps all.
	counts func(R) bool
}

// podShape is everything of a pod that count.ReadPod looks at. Lists of resources
// are kept whole: whether there is one, with no GPU in it, makes a difference (R8).
var podShape = &shape{parts: []part{
	{number: 1, shape: &shape{whole: fields(1, 3, 6, 9)}}, // metadata: name, namespace, resourceVersion, deletionTimestamp
	{number: 2, shape: &shape{ // spec
		whole: fields(7, 10, 25, 32, 38, 40), // nodeSelector, nodeName, priority, overhead, schedulingGates, resources
		parts: []part{
			{number: 2, shape: containerShape}, {number: 20, shape: containerShape}, // containers, initContainers
			{number: 18, shape: affinityShape},
		},
	}},
	{number: 3, shape: &shape{ // status
		whole: fields(1, 2, 11, 18, 19, 20, 21),                                          // phase, conditions, nominatedNodeName, extendedResourceClaimStatus, allocatedResources, resources, nodeAllocatableResourceClaimStatuses
		parts: []part{{number: 8, shape: statusShape}, {number: 10, shape: statusShape}}, // containerStatuses, initContainerStatuses
	}},
}}

var (
	containerShape = &shape{whole: fields(1, 8, 24)}                                     // name, resources, restartPolicy
	statusShape    = &shape{whole: fields(1, 10, 11)}                                    // name, allocatedResources, resources
	affinityShape  = &shape{parts: []part{{number: 1, shape: &shape{whole: fields(1)}}}} // nodeAffinity: what is required
)

func podKind(names count.Names) *kind[*podRecord] {
	var amounts sharedList[count.Amount]
	var nodes shared[string, string]
	record := func(pod *corev1.Pod) *podRecord {
		r := &podRecord{resourceVersion: pod.ResourceVersion, Pod: count.ReadPod(pod, names)}
		r.Requests = amounts.of(r.Requests)
		if r.Node != "" {
			r.Node = nodes.of(r.Node, r.Node)
		}
		return r
	}
	return &kind[*podRecord]{
		resource: "pods", name: "Pod",
		evidence: newEvidence(names.Evidence()), shape: podShape,
		decode: func(message []byte) (*podRecord, error) {
			var pod corev1.Pod
			if err := pod.Unmarshal(message); err != nil {
				return nil, err
			}
			return record(&pod), nil
		},
		trim: func(obj runtime.Object) (*podRecord, error) {
			if pod, ok := obj.(*corev1.Pod); ok {
				return record(pod), nil
			}
			return nil, fmt.Errorf("%T is no pod", obj)
		},
		mark: func(id identity) *podRecord {
			r := &podRecord{resourceVersion: string(id.resourceVersion)}
			if len(id.name) > 0 {
				r.Key = string(id.namespace) + "/" + string(id.name)
			} else {
				r.Node = endOfInitialEvents
			}
			return r
		},
		counts: (*podRecord).counts,
	}
}

// counts reports whether the pod is in any number.
func (r *podRecord) counts() bool { return r.Bound() || r.Pending() }

// nodeKind keeps every node. What has no GPU is little more than a name, and the
// name is needed: of pods on a node that does not exist nothing is requested (R3),
// and of a node with devices of DRA, which need not show in the node at all, its
// state matters (N3).
func nodeKind(names count.Names) *kind[*nodeRecord] {
	var amounts sharedList[count.Amount]
	var labels sharedList[count.Label]
	record := func(node *corev1.Node) *nodeRecord {
		r := &nodeRecord{resourceVersion: node.ResourceVersion, Node: count.ReadNode(node, names)}
		r.Capacity, r.Allocatable, r.Labels = amounts.of(r.Capacity), amounts.of(r.Allocatable), labels.of(r.Labels)
		return r
	}
	return &kind[*nodeRecord]{
		resource: "nodes", name: "Node",
		shape: nodeShape(names),
		decode: func(message []byte) (*nodeRecord, error) {
			var node corev1.Node
			if err := node.Unmarshal(message); err != nil {
				return nil, err
			}
			return record(&node), nil
		},
		trim: func(obj runtime.Object) (*nodeRecord, error) {
			if node, ok := obj.(*corev1.Node); ok {
				return record(node), nil
			}
			return nil, fmt.Errorf("%T is no node", obj)
		},
		mark: func(id identity) *nodeRecord {
			r := &nodeRecord{resourceVersion: string(id.resourceVersion), Node: count.Node{Name: string(id.name)}}
			if len(id.name) == 0 {
				r.Labels = []count.Label{{Key: endOfInitialEvents}}
			}
			return r
		},
	}
}

// nodeShape is everything of a node that count.ReadNode looks at. Of labels,
// resources and conditions, of which there are dozens, only what it asks for.
func nodeShape(names count.Names) *shape {
	keyed := func(wanted func(key string) bool) func([]byte) bool {
		return func(entry []byte) (yes bool) {
			// A condition, as well as an entry of a map, begins with its key.
			err := each(entry, func(number protowire.Number, value []byte) error {
				yes = yes || number == 1 && wanted(string(value))
				return nil
			})
			return yes || err != nil // the decoder will say what is wrong with it
		}
	}
	return &shape{parts: []part{
		{number: 1, shape: &shape{ // metadata
			whole: fields(1, 6),                                        // name, resourceVersion
			parts: []part{{number: 11, only: keyed(names.KeepsLabel)}}, // labels
		}},
		{number: 2, shape: &shape{whole: fields(4, 5)}}, // spec: unschedulable, taints
		{number: 3, shape: &shape{parts: []part{ // status
			{number: 1, only: keyed(names.Match)},                                                      // capacity
			{number: 2, only: keyed(names.Match)},                                                      // allocatable
			{number: 4, only: keyed(func(key string) bool { return key == string(corev1.NodeReady) })}, // conditions
		}}},
	}}
}

// recordList is what a list gives: records of those objects that count.
type recordList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

func (l *recordList) DeepCopyObject() runtime.Object {
	c := &recordList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for _, item := range l.Items {
		c.Items = append(c.Items, item.DeepCopyObject())
	}
	return c
}
