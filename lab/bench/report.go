package bench

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// key says what was measured of whom.
type key struct {
	Scenario string `json:"scenario"`
	Size     string `json:"size"`
	// Case tells measurements of a scenario apart: how the server serves, how much happens.
	Case string `json:"case,omitempty"`
	Who  who    `json:"who"`

	pods int
}

// metrics are values by name; the name says the unit.
type metrics map[string]float64

// Result is all measurements of one thing.
type Result struct {
	key
	Metrics map[string]*Stat `json:"metrics"`
	// Load is the load average of a minute before each run.
	Load []float64 `json:"load"`
}

// Stat is one value, measured several times.
type Stat struct {
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Values []float64 `json:"values"`
}

func (s *Stat) add(v float64) {
	s.Values = append(s.Values, v)
	sorted := slices.Sorted(slices.Values(s.Values))
	n := len(sorted)
	s.Min, s.Max = sorted[0], sorted[n-1]
	s.Median = (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Machine is what it was measured on.
type Machine struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	Memory float64 `json:"memoryBytes"`
	Kernel string  `json:"kernel"`
	Go     string  `json:"go"`
}

// Report is everything that came out.
type Report struct {
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Machine Machine   `json:"machine"`
	// Controller is what the measured binary says of itself.
	Controller string    `json:"controller"`
	Runs       int       `json:"runs"`
	Results    []*Result `json:"results"`
	// Skipped says what was left out, and why.
	Skipped []string `json:"skipped"`
	Targets []Target `json:"targets"`
}

func newReport(o Options) *Report {
	return &Report{Started: time.Now(), Machine: thisMachine(), Controller: versionOf(o.Controller), Runs: o.Runs, Skipped: []string{}}
}

func (r *Report) finish() {
	r.Ended = time.Now()
	r.Targets = r.targets()
}

func (r *Report) skip(k key, why string) {
	line := fmt.Sprintf("%s, %s, %s: %s", k.Scenario, k.Size, k.Who, why)
	// Free memory is another number each time; once is enough.
	if !slices.ContainsFunc(r.Skipped, func(s string) bool {
		return strings.HasPrefix(s, fmt.Sprintf("%s, %s, %s:", k.Scenario, k.Size, k.Who))
	}) {
		r.Skipped = append(r.Skipped, line)
	}
}

func (r *Report) add(k key, load float64, m metrics) {
	result := r.find(k)
	if result == nil {
		result = &Result{key: k, Metrics: map[string]*Stat{}}
		r.Results = append(r.Results, result)
	}
	result.Load = append(result.Load, load)
	for name, value := range m {
		if math.IsNaN(value) {
			continue // was not to be measured this time
		}
		if result.Metrics[name] == nil {
			result.Metrics[name] = &Stat{}
		}
		result.Metrics[name].add(value)
	}
}

func (r *Report) find(k key) *Result {
	i := slices.IndexFunc(r.Results, func(x *Result) bool {
		return x.Scenario == k.Scenario && x.Size == k.Size && x.Case == k.Case && x.Who == k.Who
	})
	if i < 0 {
		return nil
	}
	return r.Results[i]
}

// median returns a median; not ok if it was not measured.
func (r *Report) median(k key, metric string) (float64, bool) {
	result := r.find(k)
	if result == nil || result.Metrics[metric] == nil {
		return 0, false
	}
	return result.Metrics[metric].Median, true
}

// loads returns the least and the highest load average before a run.
func (r *Report) loads() (low, high float64) {
	low = math.Inf(1)
	for _, result := range r.Results {
		low, high = min(low, slices.Min(result.Load)), max(high, slices.Max(result.Load))
	}
	return low, high
}

func thisMachine() Machine {
	memory, _ := memoryLine("/proc/meminfo", "MemTotal")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return Machine{CPU: cpuModel(), Cores: runtime.NumCPU(), Memory: memory, Kernel: strings.TrimSpace(string(kernel)), Go: runtime.Version()}
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// loadAverage is that of the last minute.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	var load float64
	_, _ = fmt.Sscan(string(text), &load)
	return load
}
