package bench

import (
	"fmt"
	"math"
)

// Target is a promise. It is a ratio of two numbers of one run, or something that hardly
// depends on the machine: what a slow machine would break is none.
type Target struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Limit is what has to be kept, Aim what is wished for.
	Limit float64 `json:"limit"`
	Aim   float64 `json:"aim"`
	// AtLeast is whether more is better.
	AtLeast bool `json:"atLeast,omitempty"`
	Unit    unit `json:"unit"`
	Met     bool `json:"met"`
	AimMet  bool `json:"aimMet"`
}

func (t Target) check() Target {
	keeps := func(limit float64) bool {
		if t.AtLeast {
			return t.Value >= limit
		}
		return t.Value <= limit
	}
	t.Met, t.AimMet = keeps(t.Limit), keeps(t.Aim)
	return t
}

// targets are those for which everything was measured.
func (r *Report) targets() (out []Target) {
	add := func(t Target, values ...value) {
		for _, v := range values {
			if !v.ok {
				return
			}
		}
		out = append(out, t.check())
	}
	plain, each := r.only("heap", controller, heapPerPlainPod), r.only("heap", controller, heapPerGPUPod)
	// The runtime's own comings and goings are a few hundred kilobytes; a pod that is kept is more.
	add(Target{Name: "live heap per pod without GPUs", Value: plain.v, Limit: 4, Aim: 0.5, Unit: inBytes}, plain)
	add(Target{Name: "live heap per GPU pod", Value: each.v, Limit: 400, Aim: 200, Unit: inBytes}, each)

	for _, size := range r.sizes("cold-start") {
		at := func(w who, metric string) value { return r.value("cold-start", size, w, metric) }
		mine, theirs, limit := at(controller, peakBytes), at(textbook, peakBytes), at(drain, cpuQuietSeconds)
		cpu := at(controller, cpuQuietSeconds)
		if size == "5k/150k" {
			add(Target{Name: "peak RSS of the textbook controller / ours, 150k pods", Value: theirs.v / mine.v, Limit: 40, Aim: 75, AtLeast: true, Unit: inTimes}, mine, theirs)
			add(Target{Name: "CPU of a cold start / that of draining, 150k pods", Value: cpu.v / limit.v, Limit: 4, Aim: 1.5, Unit: inTimes}, cpu, limit)
		}
		if size == "100k/1M" {
			add(Target{Name: "peak RSS, 1M pods", Value: mine.v, Limit: 200 << 20, Aim: 64 << 20, Unit: inBytes}, mine)
		}
	}

	event := r.only("irrelevant", controller, cpuPerEvent)
	add(Target{Name: "CPU per irrelevant event", Value: event.v, Limit: 40e-6, Aim: 10e-6, Unit: inSeconds}, event)

	if sizes := r.sizes("gpu"); len(sizes) > 1 {
		low, high := math.Inf(1), 0.0
		for _, size := range sizes {
			if v := r.value("gpu", size, controller, cpuPerEvent); v.ok {
				low, high = min(low, v.v), max(high, v.v)
			}
		}
		name := fmt.Sprintf("CPU per GPU event, most / least from %s to %s", sizes[0], sizes[len(sizes)-1])
		add(Target{Name: name, Value: high / low, Limit: 1.1, Aim: 1.1, Unit: inTimes}, value{high, high > 0 && low > 0})
	}

	ours, bare := r.caseOf("latency", "quiet", controller, p50Seconds), r.caseOf("latency", "quiet", bareUpdate, p50Seconds)
	add(Target{Name: "event to ConfigMap, quiet, p50 / a bare update", Value: ours.v / bare.v, Limit: 3, Aim: 1.5, Unit: inTimes}, ours, bare)

	writes := r.only("quiet", controller, writesPerHour)
	add(Target{Name: "ConfigMap writes per hour when nothing changes", Value: writes.v, Unit: inNumbers}, writes)
	return out
}

// value is a median that may be missing.
type value struct {
	v  float64
	ok bool
}

func (r *Report) value(scenario, size string, w who, metric string) value {
	v, ok := r.median(key{Scenario: scenario, Size: size, Who: w}, metric)
	return value{v, ok}
}

// only is the value of a scenario that is measured at one size.
func (r *Report) only(scenario string, w who, metric string) value {
	for _, result := range r.Results {
		if result.Scenario == scenario && result.Who == w && result.Metrics[metric] != nil {
			return value{result.Metrics[metric].Median, true}
		}
	}
	return value{}
}

func (r *Report) caseOf(scenario, of string, w who, metric string) value {
	for _, result := range r.Results {
		if result.Scenario == scenario && result.Case == of && result.Who == w && result.Metrics[metric] != nil {
			return value{result.Metrics[metric].Median, true}
		}
	}
	return value{}
}

// sizes are those of a scenario, in the order of measuring.
func (r *Report) sizes(scenario string) (out []string) {
	seen := map[string]bool{}
	for _, result := range r.Results {
		if result.Scenario == scenario && !seen[result.Size] {
			seen[result.Size] = true
			out = append(out, result.Size)
		}
	}
	return out
}
