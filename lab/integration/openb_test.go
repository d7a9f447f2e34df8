package integration

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/lab/load"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// openb is where the trace lies on machines that have it.
const openb = "../../../shared/data/openb"

// TestOpenB loads the whole trace while the controller runs and compares every
// row with a recount that shares no code with it; then again with a controller
// that starts when all is there.
func TestOpenB(t *testing.T) {
	if _, err := os.Stat(openb); err != nil {
		t.Skipf("the openb trace is not at %s", openb)
	}
	cluster, err := load.ReadOpenB(openb)
	if err != nil {
		t.Fatal(err)
	}
	checkLoaded(t, cluster)
}

// TestLikeOpenB is the same with the cluster built from figures, for machines
// without the trace.
func TestLikeOpenB(t *testing.T) {
	if _, err := os.Stat(openb); err == nil {
		t.Skip("TestOpenB loads as much, and the real thing")
	}
	checkLoaded(t, load.LikeOpenB(1))
}

func checkLoaded(t *testing.T, cluster *load.Cluster) {
	placement, err := load.Place(cluster)
	if err != nil {
		t.Fatal(err)
	}
	want := load.Expect(cluster, placement)
	if want.Requested != 4186 || want.Allocatable != 6212 || want.Pending != 862 || want.Naive != 7433 {
		t.Fatalf("the recount itself gives %d requested, %d allocatable, %d pending, %d naive", want.Requested, want.Allocatable, want.Pending, want.Naive)
	}
	// Stopping a control plane is quicker than deleting ten thousand objects.
	p, err := plane.Start(t.Context(), plane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	e := newEnvOn(t, p)
	first := e.start()
	result, err := load.Apply(t.Context(), p.Config(), cluster, load.Options{Namespace: e.namespace, Progress: os.Stderr})
	e.must(err)
	t.Logf("%d objects in %v", result.Objects, result.Elapsed)
	e.eventually("every row to equal the recount", func() error { return e.equals(want) })
	first.stop()

	e.must(e.client.CoreV1().ConfigMaps(e.namespace).Delete(context.Background(), "gpu-summary", metav1.DeleteOptions{}))
	second := e.start()
	e.eventually("every row to equal the recount after a restart", func() error { return e.equals(want) })
	e.faces(second, cluster, want)
}

func (e *env) equals(want load.Totals) error {
	cm, err := e.configMap()
	if err != nil {
		return err
	}
	for annotation, n := range map[string]int64{
		publish.AnnotationRequested: want.Requested, publish.AnnotationAllocatable: want.Allocatable,
		publish.AnnotationFree: want.Free, publish.AnnotationPending: want.Pending,
		publish.AnnotationOvercommitted: 0, publish.AnnotationOrphaned: 0,
	} {
		if got := cm.Annotations[annotation]; got != strconv.FormatInt(n, 10) {
			return fmt.Errorf("%s is %s, want %d", annotation, got, n)
		}
	}
	rows := map[string]string{}
	for node, n := range want.PerNode {
		rows[node] = strconv.FormatInt(n, 10)
	}
	return sameRows(rows, cm.Data)
}
