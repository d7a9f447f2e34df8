package gather

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

const (
	testNamespace = "gpus"
	testCapacity  = "gpu-capacity"
)

// cached is a cache that is never behind.
type cached struct{ client *fake.Clientset }

func (c cached) Published(name string) (*corev1.ConfigMap, string) {
	cm, err := c.client.CoreV1().ConfigMaps(testNamespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, ""
	}
	return cm, cm.ResourceVersion
}

func (c cached) AllPublished() (all []*corev1.ConfigMap) {
	list, err := c.client.CoreV1().ConfigMaps(testNamespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

// publisher publishes to a client with objects of so many bytes.
func publisher(client *fake.Clientset, maxBytes int) *publish.Publisher {
	return publish.New(client.CoreV1(), publish.Options{
		Namespace: testNamespace, Name: "gpu-summary", CapacityName: testCapacity, MaxObjectBytes: maxBytes,
	}, cached{client})
}

func published(t *testing.T, client *fake.Clientset, maxBytes int, snap *count.Snapshot) {
	t.Helper()
	if _, err := publisher(client, maxBytes).Publish(t.Context(), snap); err != nil {
		t.Fatal(err)
	}
}

// counted is what count makes of random nodes and pods.
func counted(r *rand.Rand) *count.Snapshot {
	names, err := count.ParseNames(count.DefaultNames()...)
	if err != nil {
		panic(err)
	}
	w := count.World{NodesKnown: r.IntN(4) > 0, Observed: count.Observed{Pods: fmt.Sprint(r.IntN(1000)), Nodes: "8", Classes: "1"}}
	resources := []corev1.ResourceName{"nvidia.com/gpu", "amd.com/gpu"}
	for i := range r.IntN(60) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%03d", i), Labels: map[string]string{"nvidia.com/gpu.product": "A100"}}}
		n.Spec.Unschedulable = r.IntN(5) == 0
		n.Status.Capacity = corev1.ResourceList{resources[r.IntN(2)]: *resource.NewQuantity(8, resource.DecimalSI)}
		n.Status.Allocatable = n.Status.Capacity
		record := count.ReadNode(n, names)
		w.Nodes = append(w.Nodes, &record)
	}
	for i := range r.IntN(100) {
		p := testPod(fmt.Sprintf("team-%d", r.IntN(3)), fmt.Sprint("p", i))
		if r.IntN(3) > 0 {
			p.Spec.NodeName = fmt.Sprintf("node-%03d", r.IntN(60))
		}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{resources[r.IntN(2)]: *resource.NewQuantity(int64(r.IntN(9)), resource.DecimalSI)},
		}}}
		if r.IntN(3) == 0 {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}}
		}
		record := count.ReadPod(p, names)
		w.Pods = append(w.Pods, &record)
	}
	if r.IntN(2) == 0 {
		w.DRA = &count.DRA{State: count.DRAForbidden, Reason: "no permission"}
	}
	return count.Take(w)
}

// TestPublished: what is read is what was published, in one object or in many.
func TestPublished(t *testing.T) {
	r := seeded(t)
	sharded := 0
	for range 50 {
		want := counted(r)
		client := fake.NewClientset()
		published(t, client, []int{0, 6000, 12000}[r.IntN(3)], want)
		got, err := Published(t.Context(), client.CoreV1(), testNamespace, testCapacity)
		if err != nil {
			t.Fatal(err)
		}
		want.Complete = count.Observed{} // is not published
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read (-want +got):\n%s", cmp.Diff(want, got))
		}
		if _, err := client.CoreV1().ConfigMaps(testNamespace).Get(t.Context(), testCapacity+"-shard-0002", metav1.GetOptions{}); err == nil {
			sharded++
		}
	}
	if sharded < 5 {
		t.Errorf("only %d of 50 had shards", sharded)
	}
}

// several is a snapshot of so many nodes, for three or more shards of 6000 bytes.
func several(nodes int) *count.Snapshot {
	w := count.World{NodesKnown: true, Observed: count.Observed{Pods: "1", Nodes: "1"}}
	for i := range nodes {
		w.Nodes = append(w.Nodes, &count.Node{Name: fmt.Sprintf("node-%03d", i), Capacity: count.Amounts{{Resource: count.NVIDIA, Value: 8}}})
	}
	return count.Take(w)
}

// TestPublishedMeanwhile: a set that is written while it is read is read again, and
// what comes out is one state.
func TestPublishedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		before, after := several(100), several(150)
		published(t, client, 6000, before)
		gets := 0
		client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			if gets++; gets == 2 { // the base has been read
				publishedMeanwhile(t, client, after)
			}
			return false, nil, nil
		})
		begin := time.Now()
		got, err := Published(t.Context(), client.CoreV1(), testNamespace, testCapacity)
		if err != nil {
			t.Fatal(err)
		}
		after.Complete = count.Observed{}
		if !reflect.DeepEqual(got, after) {
			t.Errorf("read (-want +got):\n%s", cmp.Diff(after, got))
		}
		if waited := time.Since(begin); waited != pause {
			t.Errorf("it took %v", waited)
		}
	})
}

// publishedMeanwhile writes from within a request: through another client, for a fake one
// does one thing at a time.
func publishedMeanwhile(t *testing.T, client *fake.Clientset, snap *count.Snapshot) {
	other := fake.NewClientset()
	published(t, other, 6000, snap)
	for _, cm := range (cached{other}).AllPublished() {
		resource := corev1.SchemeGroupVersion.WithResource("configmaps")
		if err := client.Tracker().Update(resource, cm, testNamespace); apierrors.IsNotFound(err) {
			err = client.Tracker().Create(resource, cm, testNamespace)
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPublishedEnds: waiting for a set to fit together ends with ctx.
func TestPublishedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		published(t, client, 6000, several(100))
		if err := client.CoreV1().ConfigMaps(testNamespace).Delete(t.Context(), testCapacity+"-shard-0001", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), pause/2, errors.New("enough"))
		defer cancel()
		_, err := Published(ctx, client.CoreV1(), testNamespace, testCapacity)
		if want := "ConfigMap gpus/gpu-capacity: does not fit together with its shards: gpu-capacity-shard-0001 is missing: enough"; err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	})
}

// TestWordsOfLaterVersions: what is not known is left out, and hides nothing.
func TestWordsOfLaterVersions(t *testing.T) {
	client := fake.NewClientset()
	base := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testCapacity, Annotations: map[string]string{
		publish.AnnotationObserved: "pods@12 comets@3 nodes@7 resourceclaims@5 odd",
	}}, Data: map[string]string{
		publish.KeySummary: `{"schemaVersion":"1","nodesKnown":true,"comets":[1],"resources":[{"resource":"nvidia.com/gpu","requested":3,"pending":{"devices":5,"pods":2,` +
			`"reasons":[{"reason":"retrograde","devices":1,"pods":1},{"reason":"gated","devices":4,"pods":1}]}}]}`,
		publish.KeyNodes: `{"schemaVersion":"1","rows":[{"node":"b","source":"moon","states":["eclipsed"]},{"node":"a"}]}`,
	}}
	if _, err := client.CoreV1().ConfigMaps(testNamespace).Create(t.Context(), base, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := Published(t.Context(), client.CoreV1(), testNamespace, testCapacity)
	want := &count.Snapshot{
		Observed: count.Observed{Pods: "12", Nodes: "7", Claims: "5"}, NodesKnown: true,
		Summaries: []count.Summary{{Resource: count.NVIDIA, Numbers: count.Numbers{Requested: 3}, Pending: count.Pending{
			Devices: 5, Pods: 2, Reasons: []count.Reason{{Wait: count.Gated, Devices: 4, Pods: 1}},
		}}},
		Rows: []count.Row{{Node: "a"}, {Node: "b", Source: "moon", States: []count.State{"eclipsed"}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(want, got))
	}
}
