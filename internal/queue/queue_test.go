package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/queue"
)

// TestBackOffIsCapped: however long a key has been failing, it is tried again
// within 30 seconds.
func TestBackOffIsCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(clock.RealClock{})
		defer q.ShutDown()
		var waits []time.Duration
		for range 15 {
			start := time.Now()
			q.AddRateLimited(queue.Summary)
			key, _ := q.Get()
			q.Done(key)
			waits = append(waits, time.Since(start))
		}
		for i, want := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
			if waits[i] != want {
				t.Errorf("wait %d is %v, want %v", i, waits[i], want)
			}
		}
		if last := waits[len(waits)-1]; last != 30*time.Second {
			t.Errorf("the last wait is %v, want 30s", last)
		}
	})
}

// TestFiftyAddsAreOneKey: whatever arrives while a key is worked on is one more
// pass, not fifty.
func TestFiftyAddsAreOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(clock.RealClock{})
		defer q.ShutDown()
		q.Add(queue.Summary)
		key, _ := q.Get()
		for range 50 {
			q.Add(queue.Summary)
		}
		if q.Len() != 0 {
			t.Errorf("%d keys are handed out while the same key is worked on", q.Len())
		}
		q.Done(key)
		if q.Len() != 1 {
			t.Errorf("%d passes follow, want 1", q.Len())
		}
	})
}

type adds int

func (a *adds) Add(queue.Key) { *a++ }

func TestEnqueuer(t *testing.T) {
	bound := func(changes ...func(*count.Pod)) *count.Pod {
		p := &count.Pod{Key: "ns/p", Node: "n", Requests: count.Amounts{{Resource: count.NVIDIA, Value: 2}}}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	cpuOnly := func(p *count.Pod) { p.Requests = nil }
	finished := func(p *count.Pod) { p.Terminal = true }
	same := bound()
	node := &count.Node{Name: "n", Allocatable: count.Amounts{{Resource: count.NVIDIA, Value: 8}}}
	fewer := &count.Node{Name: "n", Allocatable: count.Amounts{{Resource: count.NVIDIA, Value: 7}}}
	heartbeat := *node

	class, slice := &count.DeviceClass{Name: "c"}, &count.ResourceSlice{Name: "s", Generation: 1}
	newer := &count.ResourceSlice{Name: "s", Generation: 2}
	empty := &count.ResourceClaim{Name: "c"}
	holding := &count.ResourceClaim{Name: "c", Devices: []count.Allocated{{Driver: "d", Pool: "p", Device: "gpu-0"}}}
	alike := *holding

	for _, tc := range []struct {
		name   string
		change func(queue.Enqueuer)
		want   adds
	}{
		{"a GPU pod comes", func(e queue.Enqueuer) { e.PodChanged(nil, bound()) }, 1},
		{"a GPU pod goes", func(e queue.Enqueuer) { e.PodChanged(bound(), nil) }, 1},
		{"a pod without GPUs comes", func(e queue.Enqueuer) { e.PodChanged(nil, bound(cpuOnly)) }, 0},
		{"a pod without GPUs goes", func(e queue.Enqueuer) { e.PodChanged(bound(cpuOnly), nil) }, 0},
		{"a pod without GPUs changes", func(e queue.Enqueuer) { e.PodChanged(bound(cpuOnly), bound(cpuOnly, finished)) }, 0},
		{"a finished pod comes", func(e queue.Enqueuer) { e.PodChanged(nil, bound(finished)) }, 0},
		{"a pod finishes", func(e queue.Enqueuer) { e.PodChanged(bound(), bound(finished)) }, 1},
		{"a status update", func(e queue.Enqueuer) { e.PodChanged(bound(), bound()) }, 0},
		{"a resync", func(e queue.Enqueuer) { e.PodChanged(same, same) }, 1},
		{"a tombstone without an object", func(e queue.Enqueuer) { e.PodChanged(nil, nil) }, 1},
		{"a heartbeat", func(e queue.Enqueuer) { e.NodeChanged(node, &heartbeat) }, 0},
		{"a device turns unhealthy", func(e queue.Enqueuer) { e.NodeChanged(node, fewer) }, 1},
		{"a node comes", func(e queue.Enqueuer) { e.NodeChanged(nil, node) }, 1},
		{"a node goes without a trace", func(e queue.Enqueuer) { e.NodeChanged(nil, nil) }, 1},
		{"a class comes", func(e queue.Enqueuer) { e.DeviceClassChanged(nil, class) }, 1},
		{"a slice is published anew", func(e queue.Enqueuer) { e.ResourceSliceChanged(slice, newer) }, 1},
		{"a slice goes without a trace", func(e queue.Enqueuer) { e.ResourceSliceChanged(nil, nil) }, 1},
		{"a claim comes", func(e queue.Enqueuer) { e.ResourceClaimChanged(nil, empty) }, 0},
		{"a claim is allocated", func(e queue.Enqueuer) { e.ResourceClaimChanged(empty, holding) }, 1},
		{"a claim is reserved for somebody", func(e queue.Enqueuer) { e.ResourceClaimChanged(holding, &alike) }, 0},
		{"a claim that holds nothing goes", func(e queue.Enqueuer) { e.ResourceClaimChanged(empty, nil) }, 0},
		{"DRA appears", func(e queue.Enqueuer) { e.DRAChanged() }, 1},
		{"somebody edits the ConfigMap", func(e queue.Enqueuer) { e.SummaryChanged(&corev1.ConfigMap{}, &corev1.ConfigMap{}) }, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got adds
			tc.change(queue.Enqueuer{Queue: &got})
			if got != tc.want {
				t.Errorf("%d adds, want %d", got, tc.want)
			}
		})
	}
}
