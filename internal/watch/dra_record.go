package watch

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// The records of DRA, as those of pods and nodes.
type classRecord struct {
	resourceVersion string
	count.DeviceClass
}

type sliceRecord struct {
	resourceVersion string
	count.ResourceSlice
}

type claimRecord struct {
	resourceVersion string
	count.ResourceClaim
}

func (r *classRecord) GetName() string      { return r.Name }
func (r *classRecord) GetNamespace() string { return "" }
func (r *classRecord) GetObjectMeta() metav1.Object {
	return objectMeta("", r.Name, r.UID, r.resourceVersion)
}
func (r *classRecord) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (r *classRecord) DeepCopyObject() runtime.Object {
	c := *r
	c.Selectors = slices.Clone(r.Selectors)
	return &c
}

func (r *sliceRecord) GetName() string      { return r.Name }
func (r *sliceRecord) GetNamespace() string { return "" }
func (r *sliceRecord) GetObjectMeta() metav1.Object {
	return objectMeta("", r.Name, r.UID, r.resourceVersion)
}
func (r *sliceRecord) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject shares the attributes, which nobody can change.
func (r *sliceRecord) DeepCopyObject() runtime.Object {
	c := *r
	c.Devices, c.Counters = slices.Clone(r.Devices), slices.Clone(r.Counters)
	for i := range c.Devices {
		c.Devices[i].Uses = slices.Clone(c.Devices[i].Uses)
	}
	return &c
}

func (r *claimRecord) GetName() string      { return r.Name }
func (r *claimRecord) GetNamespace() string { return r.Namespace }
func (r *claimRecord) GetObjectMeta() metav1.Object {
	return objectMeta(r.Namespace, r.Name, r.UID, r.resourceVersion)
}
func (r *claimRecord) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (r *claimRecord) DeepCopyObject() runtime.Object {
	c := *r
	c.Devices = slices.Clone(r.Devices)
	return &c
}

func (r *classRecord) record() *count.DeviceClass {
	if r == nil {
		return nil
	}
	return &r.DeviceClass
}

func (r *sliceRecord) record() *count.ResourceSlice {
	if r == nil {
		return nil
	}
	return &r.ResourceSlice
}

func (r *claimRecord) record() *count.ResourceClaim {
	if r == nil {
		return nil
	}
	return &r.ResourceClaim
}

// trimClass reduces a class to its record.
func trimClass(names count.Names) cache.TransformFunc {
	return func(obj any) (any, error) {
		if class, ok := obj.(*resourcev1.DeviceClass); ok {
			return &classRecord{resourceVersion: class.ResourceVersion, DeviceClass: count.ReadDeviceClass(class, names)}, nil
		}
		return obj, nil
	}
}

// trimSlice reduces a slice to its record.
func trimSlice(obj any) (any, error) {
	if slice, ok := obj.(*resourcev1.ResourceSlice); ok {
		return &sliceRecord{resourceVersion: slice.ResourceVersion, ResourceSlice: count.ReadResourceSlice(slice)}, nil
	}
	return obj, nil
}

// trimClaim reduces a claim to its record.
func trimClaim(obj any) (any, error) {
	if claim, ok := obj.(*resourcev1.ResourceClaim); ok {
		return &claimRecord{resourceVersion: claim.ResourceVersion, ResourceClaim: count.ReadResourceClaim(claim)}, nil
	}
	return obj, nil
}
