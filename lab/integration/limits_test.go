package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// protobuf is what the controller speaks. Of JSON the server takes no more than
// 3 MiB at a time, which would be a third limit.
func (e *env) protobuf() *kubernetes.Clientset {
	e.Helper()
	config := rest.CopyConfig(e.plane.Config())
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	e.must(err)
	return client
}

// TestTheServerTakesOneMebibyteOfValues, to the byte, and keys do not count. It is
// the number by which the controller says beforehand that summary.json is too large.
func TestTheServerTakesOneMebibyteOfValues(t *testing.T) {
	e := newEnv(t)
	const limit = 1 << 20
	put := func(name string, bytes int) error {
		_, err := e.protobuf().CoreV1().ConfigMaps(e.namespace).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": strings.Repeat("x", bytes-1), "long-key": "x"},
		}, metav1.CreateOptions{})
		return err
	}
	if err := put("just-fits", limit); err != nil {
		t.Errorf("%d bytes: %v", limit, err)
	}
	if err := put("just-does-not", limit+1); !apierrors.IsInvalid(err) {
		t.Errorf("%d bytes: %v", limit+1, err)
	}

	// The same through the publisher. Namespaces are what makes a summary large.
	p := e.publisher(func(o *publish.Options) { o.Name = "gpu-summary" })
	size := func(shares int, name string) (int, error) {
		snap := &count.Snapshot{
			Observed:  count.Observed{Pods: "1"},
			Summaries: []count.Summary{{Resource: count.NVIDIA, Namespaces: make([]count.Share, shares)}},
			Rows:      []count.Row{{Node: "gpu-1", Resource: count.NVIDIA, Numbers: count.Numbers{Requested: 1}}},
		}
		snap.Summaries[0].Namespaces[0].Name = name
		_, err := p.Publish(t.Context(), snap)
		cm, _ := live{e}.Published("gpu-capacity")
		if err != nil || cm == nil {
			return 0, err
		}
		return len(cm.Data["summary.json"]) + len(cm.Data["nodes.json"]), nil
	}
	bytes, err := size(20_000, "")
	e.must(err)
	// With the rows on a shard of their own the base has just the summary.
	room := limit - bytes
	if bytes, err = size(20_000, strings.Repeat("n", room)); err != nil || bytes != limit {
		t.Errorf("a summary of %d bytes: %v", bytes, err)
	}
	before, _ := live{e}.Published("gpu-capacity")
	_, err = size(20_000, strings.Repeat("n", room+1))
	if want := fmt.Sprintf("ConfigMap %s/gpu-capacity: too large: it would hold %d bytes", e.namespace, limit+1); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
	if now, _ := (live{e}).Published("gpu-capacity"); now.ResourceVersion != before.ResourceVersion {
		t.Error("something was written all the same")
	}
}

// TestEtcdTakesWhatWeighsLessThanTheLimit with managedFields, which name every key
// once more, however long the names are, and also when somebody else owns the rows.
// With more the server drops managedFields first; then it refuses in one of three
// ways, and the error says what to do.
func TestEtcdTakesWhatWeighsLessThanTheLimit(t *testing.T) {
	for _, length := range []int{6, 51, 253} {
		t.Run(fmt.Sprint(length), func(t *testing.T) { checkWeight(t, length) })
	}
}

func checkWeight(t *testing.T, length int) {
	e := newEnv(t)
	configMaps := e.protobuf().CoreV1().ConfigMaps(e.namespace)
	try := func(factor, pass int) (stored, managed int, err error) {
		limit := factor * publish.DefaultMaxObjectBytes
		snap := &count.Snapshot{Observed: count.Observed{Pods: "1"}}
		for i := range limit / (length + 1 + 16) {
			node := fmt.Sprintf("%0*d", length, i)
			snap.Rows = append(snap.Rows, count.Row{Node: node, Resource: count.NVIDIA, Numbers: count.Numbers{Requested: int64((i + pass) % 9)}})
		}
		o := publish.Options{Namespace: e.namespace, Name: "gpu-summary", MaxObjectBytes: limit}
		if _, err := publish.New(e.protobuf().CoreV1(), o, live{e}).Publish(t.Context(), snap); err != nil {
			return 0, 0, err
		}
		p, err := readPublished(t.Context(), configMaps, "gpu-summary")
		e.must(err)
		if p.shards != 0 || len(p.rows) != len(snap.Rows) {
			t.Errorf("%d rows on %d shards, want %d on the base", len(p.rows), p.shards, len(snap.Rows))
		}
		for _, m := range p.base.ManagedFields {
			managed += m.Size()
		}
		t.Logf("%d names of %d characters are stored in %d bytes, %d of them managedFields", len(p.rows), length, p.base.Size(), managed)
		return p.base.Size(), managed, nil
	}
	for pass := range 2 {
		stored, managed, err := try(1, pass)
		e.must(err)
		if stored > 2*publish.DefaultMaxObjectBytes+4<<10 || managed == 0 {
			t.Errorf("stored in %d bytes with %d of managedFields: want no more than twice the weight, and all of it", stored, managed)
		}
		// Somebody else touches every row, and owns them from then on.
		cm, err := configMaps.Get(t.Context(), "gpu-summary", metav1.GetOptions{})
		e.must(err)
		for key := range cm.Data {
			cm.Data[key] = "x"
		}
		_, err = configMaps.Update(t.Context(), cm, metav1.UpdateOptions{FieldManager: "somebody"})
		e.must(err)
	}
	if _, managed, err := try(3, 0); err != nil || managed != 0 {
		t.Errorf("three times the limit: %v, and %d bytes of managedFields, which should be gone", err, managed)
	}
	if length != 51 {
		return // the server takes seconds to find out about so many fields
	}
	for factor, limit := range map[int]string{
		4: "etcdserver: request is too large", // etcd's 1.5 MiB
		5: "message larger than max",          // 2 MiB on the way to it
		8: "limit is 3145728",                 // the API server's 3 MiB
	} {
		_, _, err := try(factor, 0)
		if !errors.Is(err, publish.ErrTooLarge) {
			t.Errorf("%d times the limit: %v", factor, err)
			continue
		}
		for _, said := range []string{"ConfigMap " + e.namespace + "/gpu-summary", limit, "keys and values have", "--max-object-bytes"} {
			if !strings.Contains(err.Error(), said) {
				t.Errorf("the error does not say %q: %v", said, err)
			}
		}
	}
}
