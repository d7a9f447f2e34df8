package bench

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a report with something in most tables.
func sample() *Report {
	r := &Report{Runs: 3, Controller: "gpu-summary-controller version v1", Skipped: []string{"cold-start, 100k/1M, textbook: needs about 28 GiB, 22 GiB are free"}}
	for i := range 3 {
		n := 1 + float64(i)/10
		for _, size := range []string{"5k/150k", "100k/1M"} {
			r.add(key{Scenario: "cold-start", Size: size, Who: controller}, n, metrics{wallSeconds: n, cpuQuietSeconds: 2 * n, peakBytes: 50e6 * n})
			r.add(key{Scenario: "cold-start", Size: size, Who: drain}, n, metrics{wallSeconds: n, cpuQuietSeconds: n, peakBytes: 40e6})
			r.add(key{Scenario: "gpu", Size: size, Who: controller}, n, metrics{cpuPerEvent: 10e-6})
		}
		r.add(key{Scenario: "cold-start", Size: "5k/150k", Who: textbook}, n, metrics{wallSeconds: 14, peakBytes: 5e9 * n})
		r.add(key{Scenario: "latency", Size: "5k/150k", Case: "quiet", Who: controller}, n, metrics{p50Seconds: 0.004, p99Seconds: 0.009})
		r.add(key{Scenario: "latency", Size: "5k/150k", Case: "quiet", Who: bareUpdate}, n, metrics{p50Seconds: 0.002, p99Seconds: 0.004})
		r.add(key{Scenario: "quiet", Size: "5k/150k", Who: controller}, n, metrics{writesPerHour: 0})
	}
	r.finish()
	return r
}

func TestMedians(t *testing.T) {
	var s Stat
	for _, v := range []float64{5, 1, 3, 100} {
		s.add(v)
	}
	if s.Median != 4 || s.Min != 1 || s.Max != 100 || len(s.Values) != 4 {
		t.Errorf("%+v", s)
	}
	s.add(2)
	if s.Median != 3 {
		t.Errorf("of five: %v", s.Median)
	}
}

func TestTargets(t *testing.T) {
	verdicts := map[string]Target{}
	for _, target := range sample().Targets {
		verdicts[target.Name] = target
	}
	for name, want := range map[string]struct {
		value       float64
		met, aimMet bool
	}{
		"CPU of a cold start / that of draining, 150k pods":       {2, true, false},
		"peak RSS of the textbook controller / ours, 150k pods":   {100, true, true},
		"event to ConfigMap, quiet, p50 / a bare update":          {2, true, false},
		"ConfigMap writes per hour when nothing changes":          {0, true, true},
		"CPU per GPU event, most / least from 5k/150k to 100k/1M": {1, true, true},
	} {
		got, ok := verdicts[name]
		if !ok || got.Value-want.value > 1e-9 || want.value-got.Value > 1e-9 || got.Met != want.met || got.AimMet != want.aimMet {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if _, ok := verdicts["CPU per irrelevant event"]; ok {
		t.Error("a verdict on what was not measured")
	}
}

func TestNumbersAsPeopleReadThem(t *testing.T) {
	for _, tc := range []struct {
		unit unit
		v    float64
		want string
	}{
		{inSeconds, 0, "0 s"}, {inSeconds, 8.4e-6, "8.4 µs"}, {inSeconds, 0.0123, "12.3 ms"}, {inSeconds, 61.24, "61.2 s"}, {inSeconds, 1234.5, "1,234 s"},
		{inBytes, 0.25, "0.25 B"}, {inBytes, 1536, "1.5 KiB"}, {inBytes, 57 << 20, "57 MiB"}, {inBytes, 3 << 30, "3 GiB"},
		{inTimes, 2.345, "2.35 ×"}, {inNumbers, 1080, "1,080"}, {inNumbers, -1234567, "-1,234,567"}, {inNumbers, 0.00001, "0.000"},
	} {
		if got := tc.unit.format(tc.v); got != tc.want {
			t.Errorf("%v %s is written %q, want %q", tc.v, tc.unit, got, tc.want)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"5k/150k": {5_000, 150_000}, "100k/1M": {100_000, 1_000_000}, "7/31": {7, 31}} {
		got, err := ParseSize(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5k", "5k/", "k/1", "0/1", "5x/1", "-1/5", "1.5k/2", "10/100k"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q passes as %v", text, got)
		}
	}
}

// TestDocument: what stands around the marks stays, what stands between them does not, and a second time
// changes nothing.
func TestDocument(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "benchmarks.md")
	if err := os.WriteFile(path, []byte("# Title\n\n"+beginMark+"\nold\n"+endMark+"\n\nend\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := sample()
	plots, err := r.WritePlots(filepath.Join(dir, "plots"))
	if err != nil {
		t.Fatal(err)
	}
	var before string
	for range 2 {
		if err := r.FillDocument(path, plots); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(path)
		got := string(text)
		for _, want := range []string{"# Title\n", "\n\nend\n", "| 5k/150k | controller | 1.1 s (1 s – 1.2 s) |", "(plots/cold-start-cpu.svg)", "- cold-start, 100k/1M, textbook: needs"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in\n%s", want, got)
			}
		}
		if strings.Contains(got, "\nold\n") || before != "" && got != before {
			t.Errorf("the document is\n%s", got)
		}
		before = got
	}
	if err := os.WriteFile(path, []byte("no marks"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r.FillDocument(path, nil) == nil {
		t.Error("a document without marks was filled")
	}
}

func TestPlotsAreXML(t *testing.T) {
	plots, err := sample().WritePlots(t.TempDir())
	if err != nil || len(plots) < 3 {
		t.Fatalf("%d plots, %v", len(plots), err)
	}
	for _, p := range plots {
		f, err := os.Open(p.File)
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(f); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", p.File, err)
			}
		}
		f.Close()
	}
}

// TestJSON: a run that is read again gives the same tables.
func TestJSON(t *testing.T) {
	r := sample()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := ReadReport(path)
	if err != nil {
		t.Fatal(err)
	}
	var a, b strings.Builder
	if err := errors.Join(r.WriteTable(&a), again.WriteTable(&b)); err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() || !strings.Contains(a.String(), "aim met") {
		t.Errorf("written:\n%s\nread:\n%s", a.String(), b.String())
	}
}
