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
type podRecord struct {
	resourceVersion string
	count.Pod
}

type nodeRecord struct {
	resourceVersion string
	count.Node
}

func (r *podRecord) GetName() string      { return r.Name }
func (r *podRecord) GetNamespace() string { return r.Namespace }
func (r *podRecord) GetObjectMeta() metav1.Object {
	return objectMeta(r.Namespace, r.Name, r.UID, r.resourceVersion)
}
func (r *podRecord) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (r *podRecord) DeepCopyObject() runtime.Object {
	c := *r
	c.Requests, c.Served = slices.Clone(r.Requests), slices.Clone(r.Served)
	return &c
}

func (r *nodeRecord) GetName() string      { return r.Name }
func (r *nodeRecord) GetNamespace() string { return "" }
func (r *nodeRecord) GetObjectMeta() metav1.Object {
	return objectMeta("", r.Name, r.UID, r.resourceVersion)
}
func (r *nodeRecord) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (r *nodeRecord) DeepCopyObject() runtime.Object {
	c := *r
	c.Capacity, c.Allocatable = slices.Clone(r.Capacity), slices.Clone(r.Allocatable)
	c.States, c.Labels = slices.Clone(r.States), slices.Clone(r.Labels)
	return &c
}

func objectMeta(namespace, name string, uid types.UID, version string) metav1.Object {
	return &metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, ResourceVersion: version}
}
