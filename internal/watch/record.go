package watch

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// podRecord and nodeRecord are what the indexer holds in place of a pod and a
// node. client-go wants three things of whatever lies in a store: a name, a
// resourceVersion, and, for its own checks on mutation and on consistency of the
// stream, a deep copy. A whole ObjectMeta would be most of the record, so it is
// made up when somebody asks.
//
// The record of a pod calls itself "namespace/name", in no namespace. The stores
// make their keys of the two, and this way the key is the record's own text; else
// every pod would be there with a second copy of it.
//
// It keeps no UID either. client-go's own check of a stream sorts by it, for which the
// key is as good.
//
// A bookmark is a record too, with a resourceVersion and no name.
type podRecord struct {
	resourceVersion string
	count.Pod
}

type nodeRecord struct {
	resourceVersion string
	count.Node
}

// endOfInitialEvents is the node in the bookmark that ends the initial events. (A
// field of its own would make every record of a pod larger.)
const endOfInitialEvents = metav1.InitialEventsAnnotationKey

func (r *podRecord) GetName() string      { return r.Key }
func (r *podRecord) GetNamespace() string { return "" }
func (r *podRecord) GetObjectMeta() metav1.Object {
	meta := objectMeta("", r.Key, types.UID(r.Key), r.resourceVersion)
	if r.Key == "" && r.Node == endOfInitialEvents {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return meta
}
func (r *podRecord) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (r *podRecord) DeepCopyObject() runtime.Object {
	c := *r
	c.Requests = slices.Clone(r.Requests)
	if r.More != nil {
		c.More = &count.PodMore{Models: slices.Clone(r.More.Models)}
		if claim := r.More.Claim; claim != nil {
			c.More.Claim = &count.PodClaim{Name: claim.Name, Resources: slices.Clone(claim.Resources)}
		}
	}
	return &c
}

func (r *nodeRecord) GetName() string      { return r.Name }
func (r *nodeRecord) GetNamespace() string { return "" }
func (r *nodeRecord) GetObjectMeta() metav1.Object {
	meta := objectMeta("", r.Name, types.UID(r.Name), r.resourceVersion)
	if r.Name == "" && len(r.Labels) > 0 && r.Labels[0].Key == endOfInitialEvents {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return meta
}
func (r *nodeRecord) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (r *nodeRecord) DeepCopyObject() runtime.Object {
	c := *r
	c.Capacity, c.Allocatable = slices.Clone(r.Capacity), slices.Clone(r.Allocatable)
	c.States, c.Labels = slices.Clone(r.States), slices.Clone(r.Labels)
	return &c
}

func objectMeta(namespace, name string, uid types.UID, version string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, ResourceVersion: version}
}
