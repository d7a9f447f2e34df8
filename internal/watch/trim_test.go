package watch

import (
	"reflect"
	"testing"
	"unsafe"

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
	cm := aConfigMap.DeepCopy()
	once, err := trimConfigMap(cm)
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := trimConfigMap(once); err != nil || twice != once {
		t.Errorf("a second run gives another object or an error: %v", err)
	}
	got := once.(*corev1.ConfigMap)
	if got.Namespace != "ns" || got.Name != "gpu-summary" || got.UID != "w" || got.ResourceVersion != "9" || got.ManagedFields != nil || got.Data["n"] != "2" {
		t.Errorf("got %+v", got)
	}
	tomb := cache.DeletedFinalStateUnknown{Key: "ns/p"}
	if got, err := trimConfigMap(tomb); err != nil || got != any(tomb) {
		t.Errorf("a tombstone became %v, %v", got, err)
	}
}

// TestRecordsAreObjects: what lies in a store has a key, a version and a deep copy
// that is equal and shares nothing.
func TestRecordsAreObjects(t *testing.T) {
	pod, node := aPodRecord(t, &aPod), aNodeRecord(t)
	pod.More = &count.PodMore{Claim: &count.PodClaim{Name: "c", Resources: []string{"r"}}, Models: []count.Label{{Key: "k", Value: "v"}}}
	for key, r := range map[string]stored{"ns/p": pod, "n": node} {
		got, err := meta.Accessor(r)
		if err != nil {
			t.Fatal(err)
		}
		if storedKey, err := cache.DeletionHandlingMetaNamespaceKeyFunc(r); err != nil || storedKey != key {
			t.Errorf("the key is %q, %v; want %q", storedKey, err, key)
		}
		if got.GetUID() == "" {
			t.Error("no UID: client-go sorts by it when it compares a stream with a list")
		}
		if r.GetName() != key || got.GetResourceVersion() == "" {
			t.Errorf("the name is %q, the version %q; want %q", r.GetName(), got.GetResourceVersion(), key)
		}
		copied := r.DeepCopyObject()
		if !reflect.DeepEqual(copied, r) || copied == r {
			t.Error("the deep copy is not an equal, separate object")
		}
	}
	copied := pod.DeepCopyObject().(*podRecord)
	pod.Requests[0].Value, pod.More.Claim.Resources[0], pod.More.Models[0].Value = 99, "x", "x"
	if copied.Requests.Of(count.NVIDIA) != 2 || copied.More.Claim.Resources[0] != "r" || copied.More.Models[0].Value != "v" {
		t.Error("a change of the record shows in its copy")
	}
}

type stored interface {
	GetName() string
	runtime.Object
}

func aPodRecord(t *testing.T, pod *corev1.Pod) *podRecord {
	r, err := podKind(gpus).trim(pod)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func aNodeRecord(t *testing.T) *nodeRecord {
	r, err := nodeKind(gpus).trim(&aNode)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTrimLeavesThePodAlone: reading a quantity can change it, and the object may
// be shared.
func TestTrimLeavesThePodAlone(t *testing.T) {
	pod := aPod.DeepCopy()
	before := pod.DeepCopy()
	aPodRecord(t, pod)
	if !reflect.DeepEqual(before, pod) {
		t.Errorf("the pod changed:\n%s", cmp.Diff(before, pod))
	}
}

// TestPodsShareWhatTheyHaveInCommon: the name of a node and a usual amount are there
// once.
func TestPodsShareWhatTheyHaveInCommon(t *testing.T) {
	pods := podKind(gpus)
	a, _ := pods.trim(aPod.DeepCopy())
	b, _ := pods.trim(aPod.DeepCopy())
	if unsafe.StringData(a.Node) != unsafe.StringData(b.Node) || &a.Requests[0] != &b.Requests[0] {
		t.Error("two pods have two copies")
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
		got, err := podIndexers[byNode](aPodRecord(t, pod))
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: indexed under %q, %v; want %q", name, got, err, tc.want)
		}
	}
}
