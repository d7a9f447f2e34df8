package watch

import (
	"reflect"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// TestTransformsOfDRA: as TestTransforms, for the records of DRA.
func TestTransformsOfDRA(t *testing.T) {
	node, extended := "n1", "nvidia.com/gpu"
	object := metav1.ObjectMeta{Name: "x", UID: "u", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{{}}}
	claim := object
	claim.Namespace = "ns"
	uses := []resourcev1.DeviceCounterConsumption{{CounterSet: "set", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("10Gi")}}}}
	for name, tc := range map[string]struct {
		trim cache.TransformFunc
		obj  runtime.Object
	}{
		"class": {trimClass(gpus), &resourcev1.DeviceClass{ObjectMeta: object, Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: &extended, Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "true"}}},
		}}},
		"slice": {trimSlice, &resourcev1.ResourceSlice{ObjectMeta: object, Spec: resourcev1.ResourceSliceSpec{
			Driver: "d", NodeName: &node, Devices: []resourcev1.Device{{Name: "gpu-0", ConsumesCounters: uses}},
			SharedCounters: []resourcev1.CounterSet{{Name: "set", Counters: uses[0].Counters}},
		}}},
		"claim": {trimClaim, &resourcev1.ResourceClaim{ObjectMeta: claim, Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "d", Pool: "n1", Device: "gpu-0"}}},
		}}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.obj.DeepCopyObject()
			want, _ := meta.Accessor(before)
			once, err := tc.trim(tc.obj)
			if err != nil {
				t.Fatal(err)
			}
			if twice, err := tc.trim(once); err != nil || twice != once {
				t.Errorf("a second run gives another object or an error: %v", err)
			}
			if !reflect.DeepEqual(before, tc.obj) {
				t.Error("the object changed")
			}
			got, err := meta.Accessor(once)
			if err != nil {
				t.Fatal(err)
			}
			if got.GetNamespace() != want.GetNamespace() || got.GetName() != want.GetName() || got.GetUID() != want.GetUID() || got.GetResourceVersion() != want.GetResourceVersion() {
				t.Errorf("identity %v, want %v", got, want)
			}
			copied := once.(runtime.Object).DeepCopyObject()
			if !reflect.DeepEqual(copied, once) || copied == once {
				t.Error("the deep copy is not an equal, separate object")
			}
			spoil(copied)
			again, _ := tc.trim(before)
			if !reflect.DeepEqual(again, once) {
				t.Error("a change of the copy shows in the record")
			}
			if kept, err := tc.trim(cache.DeletedFinalStateUnknown{Key: "x"}); err != nil || kept != any(cache.DeletedFinalStateUnknown{Key: "x"}) {
				t.Errorf("a tombstone became %v, %v", kept, err)
			}
		})
	}
}

// spoil changes whatever a copy could share.
func spoil(obj any) {
	switch r := obj.(type) {
	case *classRecord:
		r.Selectors[0] = "false"
	case *sliceRecord:
		r.Devices[0].Name, r.Devices[0].Uses[0].Value, r.Counters[0].Value = "", 0, 0
	case *claimRecord:
		r.Devices[0].Device = ""
	}
}
