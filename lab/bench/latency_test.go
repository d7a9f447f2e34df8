package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
)

// TestSince: an event is seen with the first summary that has it, and one summary may have many; what was
// seen before the event cannot have it, whatever it says.
func TestSince(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	s := &sightings{all: []sighting{
		{at: at(0), requested: 12}, // of an earlier time, when more was requested
		{at: at(15), requested: 11},
		{at: at(40), requested: 13},
	}}
	took := s.since([]server.GPUEvent{{At: at(10), Requested: 11}, {At: at(20), Requested: 12}, {At: at(30), Requested: 13}, {At: at(50), Requested: 14}})
	for i := range took {
		took[i] *= 1000
	}
	for i, want := range []float64{5, 20, 10} {
		if i >= len(took) || took[i] < want-0.01 || took[i] > want+0.01 {
			t.Fatalf("took %v ms, want 5, 20 and 10, and nothing for what was not seen", took)
		}
	}
	if len(took) != 3 {
		t.Errorf("took %v ms", took)
	}
}

func TestSpread(t *testing.T) {
	var values []float64
	for i := range 100 {
		values = append(values, float64(100-i))
	}
	got := spread(values)
	if got[p50Seconds] != 51 || got[p99Seconds] != 100 || got[samples] != 100 {
		t.Errorf("%v", got)
	}
	if got := spread([]float64{7}); got[p50Seconds] != 7 || got[p99Seconds] != 7 {
		t.Errorf("of one: %v", got)
	}
	if !slices.IsSorted(values) {
		t.Error("not sorted")
	}
}
