package watch

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

var (
	gpus, _ = count.ParseNames(count.DefaultNames()...)
	devices = corev1.ResourceList{count.NVIDIA: resource.MustParse("2"), corev1.ResourceCPU: resource.MustParse("1500m")}
	aPod    = corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: devices}}}},
	}
	aNode = corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "v", ResourceVersion: "8"},
		Status:     corev1.NodeStatus{Capacity: devices, Allocatable: devices},
	}
	aConfigMap = corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gpu-summary", UID: "w", ResourceVersion: "9", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Data:       map[string]string{"n": "2"},
	}
)

// TestTransforms holds what client-go asks of a transform and of what comes out:
// a second run changes nothing, the identity is kept, and a deep copy is equal
// but shares nothing.
func TestTransforms(t *testing.T) {
	for name, tc := range map[string]struct {
		trim cache.TransformFunc
		obj  runtime.Object
	}{
		"pod":       {trimPod(gpus), aPod.DeepCopy()},
		"node":      {trimNode(gpus), aNode.DeepCopy()},
		"configMap": {trimConfigMap, aConfigMap.DeepCopy()},
	} {
		t.Run(name, func(t *testing.T) {
			want, _ := meta.Accessor(tc.obj.DeepCopyObject())
			once, err := tc.trim(tc.obj)
			if err != nil {
				t.Fatal(err)
			}
			twice, err := tc.trim(once)
			if err != nil || twice != once {
				t.Errorf("a second run gives another object or an error: %v", err)
			}
			got, err := meta.Accessor(once)
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range [][2]string{
				{want.GetNamespace(), got.GetNamespace()},
				{want.GetName(), got.GetName()},
				{string(want.GetUID()), string(got.GetUID())},
				{want.GetResourceVersion(), got.GetResourceVersion()},
				{"", map[bool]string{true: "managedFields"}[len(got.GetManagedFields()) > 0]},
			} {
				if field[0] != field[1] {
					t.Errorf("identity has %q, want %q", field[1], field[0])
				}
			}
			copied := once.(runtime.Object).DeepCopyObject()
			if !reflect.DeepEqual(copied, once) || copied == once {
				t.Error("the deep copy is not an equal, separate object")
			}
		})
	}
}

func TestTransformsPassOnWhatTheyDoNotKnow(t *testing.T) {
	for name, trim := range map[string]cache.TransformFunc{"pod": trimPod(gpus), "node": trimNode(gpus), "configMap": trimConfigMap} {
		tomb := cache.DeletedFinalStateUnknown{Key: "ns/p"}
		if got, err := trim(tomb); err != nil || got != any(tomb) {
			t.Errorf("%s: a tombstone became %v, %v", name, got, err)
		}
	}
}

// TestTrimLeavesThePodAlone: reading a quantity can change it, and the object may
// be shared.
func TestTrimLeavesThePodAlone(t *testing.T) {
	pod := aPod.DeepCopy()
	before := pod.DeepCopy()
	if _, err := trimPod(gpus)(pod); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, pod) {
		t.Errorf("the pod changed:\n%s", cmp.Diff(before, pod))
	}
}

// TestDeepCopySharesNothing: the mutation detector compares a record with its
// copy, and would be blind to whatever both share.
func TestDeepCopySharesNothing(t *testing.T) {
	obj, _ := trimPod(gpus)(aPod.DeepCopy())
	record := obj.(*podRecord)
	copied := record.DeepCopyObject().(*podRecord)
	record.Requests[0].Value = 99
	if copied.Requests.Of(count.NVIDIA) != 2 {
		t.Error("a change of the record shows in its copy")
	}
}

func TestByNodeHoldsOnlyWhatCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"bound":       {func(*corev1.Pod) {}, []string{"n"}},
		"waiting":     {func(p *corev1.Pod) { p.Spec.NodeName = "" }, []string{unbound}},
		"finished":    {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, nil},
		"without GPU": {func(p *corev1.Pod) { p.Spec.Containers = nil }, nil},
	} {
		pod := aPod.DeepCopy()
		tc.change(pod)
		record, _ := trimPod(gpus)(pod)
		got, err := podIndexers[byNode](record)
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: indexed under %q, %v; want %q", name, got, err, tc.want)
		}
	}
}
