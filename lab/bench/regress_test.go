package bench

import (
	"context"
	"testing"
	"time"
)

// limit is a ratio of two numbers of one run. It is far from what is measured on a machine that has
// nothing else to do, so that a busy one does not fail it, and near enough that what it is about cannot
// come back unseen.
type limit struct {
	what           string
	value, against value
	factor         float64
	ifBroken       string
}

func (l limit) check(t *testing.T) {
	t.Helper()
	if !l.value.ok || !l.against.ok {
		t.Errorf("%s: was not measured", l.what)
		return
	}
	ratio := l.value.v / l.against.v
	t.Logf("%s: %.2f, at most %g", l.what, ratio, l.factor)
	if ratio > l.factor {
		t.Errorf("%s is %.2f, more than %g: %s", l.what, ratio, l.factor, l.ifBroken)
	}
}

// TestRatios is the benchmark on clusters that are small, with bounds that are wide.
func TestRatios(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const size = "1k/40k"
	report, err := Run(ctx, Options{
		Self: []string{builtLab, "bench"}, Controller: builtController, Runs: 1, Quick: true,
		Sizes: []Size{{1_000, 40_000}}, Scenarios: []string{"cold-start", "irrelevant"},
		// The textbook controller would be the better measure, and on a busy machine it
		// works for minutes. What pods cost to keep is a test of internal/watch.
		Who: []string{string(controller), string(drain)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Skipped) > 0 {
		t.Skipf("left out: %v", report.Skipped)
	}
	cold := func(w who, metric string) value { return report.value("cold-start", size, w, metric) }
	event := func(w who) value { return report.only("irrelevant", w, cpuPerEvent) }
	for _, l := range []limit{
		{"CPU of a cold start against draining", cold(controller, cpuQuietSeconds), cold(drain, cpuQuietSeconds), 15, "whole pods are decoded"},
		{"peak RSS against draining", cold(controller, peakBytes), cold(drain, peakBytes), 5, "pods, or the frames they came in, are kept"},
		{"CPU per irrelevant event against draining", event(controller), event(drain), 8, "events that change no number are worked on"},
		{"memory after irrelevant events against before", report.only("irrelevant", controller, peakAfter), cold(controller, peakBytes), 2, "events that change no number are kept"},
	} {
		l.check(t)
	}
	if writes := report.only("irrelevant", controller, writesDuring); !writes.ok || writes.v != 0 {
		t.Errorf("%v writes while nothing changed that counts", writes.v)
	}
}
