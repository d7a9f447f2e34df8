package api_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

func requested(n int64) *count.Snapshot {
	return count.Take(count.World{Pods: []*count.Pod{pod("a/b", "n", n)}})
}

// TestHistory has a point for each change, of the changes within ten seconds the last,
// and none while nothing changes.
func TestHistory(t *testing.T) {
	var h api.History
	begin := time.Unix(1_700_000_000, 0) // a multiple of ten seconds
	for _, change := range []struct{ after, n int64 }{{0, 1}, {1, 2}, {11, 3}, {15, 4}, {19, 5}, {300, 5}, {4000, 6}, {4001, 6}} {
		h.Add(begin.Add(time.Duration(change.after)*time.Second), requested(change.n))
	}
	want := []struct{ after, n int64 }{{0, 1}, {1, 2}, {19, 5}, {4000, 6}}
	got := h.Of(count.NVIDIA)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, p := range got {
		if p.At.Sub(begin) != time.Duration(want[i].after)*time.Second || p.Requested != want[i].n {
			t.Errorf("point %d is %+v, want %+v", i, p, want[i])
		}
	}
	h.Add(begin.Add(5000*time.Second), count.Take(count.World{}))
	if got = h.Of(count.NVIDIA); got[len(got)-1].Requested != 0 {
		t.Errorf("a resource that is gone: %+v", got[len(got)-1])
	}
	if got := h.Of("nothing"); got != nil {
		t.Errorf("a resource that never was: %+v", got)
	}
}

// TestHistoryIsBounded: a year of changes has a few hundred points, with the first and
// the last of them, and at each point the value was really so.
func TestHistoryIsBounded(t *testing.T) {
	var h api.History
	r := rand.New(rand.NewPCG(1, 1))
	begin := time.Unix(1_700_000_000, 0)
	was := map[int64]int64{}
	at, last := int64(0), int64(0)
	for range 20_000 {
		last = r.Int64N(100) + 1
		was[at] = last
		h.Add(begin.Add(time.Duration(at)*time.Second), requested(last))
		at += 1 + r.Int64N(3000)
	}
	points := h.Of(count.NVIDIA)
	if len(points) > 512 || len(points) < 100 {
		t.Errorf("%d points", len(points))
	}
	if !points[0].At.Equal(begin) || points[len(points)-1].Requested != last {
		t.Errorf("the first is %+v, the last %+v", points[0], points[len(points)-1])
	}
	for i, p := range points {
		if was[int64(p.At.Sub(begin).Seconds())] != p.Requested || i > 0 && !p.At.After(points[i-1].At) {
			t.Errorf("point %d is %+v", i, p)
		}
	}
	for i := range 100 { // resources, of which some are remembered
		w := count.World{Pods: []*count.Pod{{Key: "a/b", Node: "n", Requests: count.Amounts{{Resource: "nvidia.com/mig-" + string(rune('a'+i)), Value: 1}}}}}
		h.Add(begin.Add(time.Duration(at)*time.Second), count.Take(w))
	}
	if h.Of("nvidia.com/mig-b") == nil || h.Of("nvidia.com/mig-"+string(rune('a'+99))) != nil {
		t.Error("the number of resources is not bounded")
	}
}
