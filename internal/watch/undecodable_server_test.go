package watch

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestBadObjectsInAnyKindOfServer: with a pod and a node that cannot be decoded the
// caches fill all the same, in a stream and in pages.
func TestBadObjectsInAnyKindOfServer(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		for _, pages := range []bool{false, true} {
			t.Run(fmt.Sprintf("json %v, in pages %v", asJSON, pages), func(t *testing.T) {
				pods := []runtime.Object{gpuPod("a", "n", 1), ruinedPod("bad", "8"), gpuPod("b", "n", 1)}
				nodes := []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "7"}}, ruinedNode("bad", "8")}
				s := newAPIServer(t, pods, nodes, func(s *apiServer) { s.json, s.noWatchList, s.change = asJSON, pages, ruin })
				w := s.start(&heard{})
				world, err := w.World()
				if err != nil || len(world.Pods) != 2 || len(world.Nodes) != 1 {
					t.Fatalf("%d pods, %d nodes, %v; want 2, 1", len(world.Pods), len(world.Nodes), err)
				}
				for _, stats := range w.Stats() {
					want := int64(1)
					if stats.Resource == "configmaps" {
						want = 0
					}
					if stats.Undecodable != want || stats.Missing != int(want) || !stats.Synced {
						t.Errorf("%s: %d undecodable, %d missing, synced %v; want %d", stats.Resource, stats.Undecodable, stats.Missing, stats.Synced, want)
					}
				}
			})
		}
	}
}

// TestTheLastRecordStays: a pod that becomes undecodable counts as it did.
func TestTheLastRecordStays(t *testing.T) {
	s := newAPIServer(t, []runtime.Object{gpuPod("a", "n", 3)}, nil, func(*apiServer) {})
	w := s.start(&heard{})
	out := &wire{}
	out.send(t, apiwatch.Modified, ruinedPod("a", "1000001"), ruin)
	s.events["pods"] <- out.Bytes()
	for deadline := time.Now().Add(time.Minute); w.pods.complete() != "1000001"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the position is %s, want 1000001", w.pods.complete())
		}
	}
	world, err := w.World()
	if err != nil || len(world.Pods) != 1 || world.Pods[0].Requests.Of(count.NVIDIA) != 3 {
		t.Errorf("%+v, %v; want one pod with 3", world.Pods, err)
	}
}
