package serve_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

// read returns the series of a recorder that are not zero.
func read(t *testing.T, r *serve.Recorder) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := make(map[string]float64)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "gpu_summary_")
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			if value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue(); value != 0 {
				series[name] = value
			}
		}
	}
	return series
}

func writes(reasons ...publish.Reason) (result publish.Result) {
	for _, reason := range reasons {
		result.Writes = append(result.Writes, publish.Write{Name: "gpu-summary", Reason: reason})
	}
	return result
}

func TestPublishesAreCounted(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	conflict := fmt.Errorf("update: %w", apierrors.NewConflict(configMaps, "gpu-summary", errors.New("changed")))
	forbidden := apierrors.NewForbidden(configMaps, "gpu-summary", errors.New("no"))
	fenced := fmt.Errorf("ConfigMap: %w", publish.ErrBehind)
	for _, tc := range []struct {
		name   string
		result publish.Result
		err    error
		want   map[string]float64
	}{
		{"nothing to write", writes(), nil, map[string]float64{"publishes_total unchanged": 1, "published_timestamp_seconds": 946684800}},
		{"each reason", writes(publish.Missing, publish.Outdated, publish.Changed, publish.Changed, publish.Vanished, publish.Edited, publish.Unneeded), nil,
			map[string]float64{
				"publishes_total written": 1, "published_timestamp_seconds": 946684800,
				"writes_total missing": 1, "writes_total outdated": 1, "writes_total changed": 2, "writes_total vanished": 1, "writes_total edited": 1, "writes_total unneeded": 1,
				"drift_repaired_total vanished": 1, "drift_repaired_total edited": 1,
			}},
		{"half done", writes(publish.Changed), conflict,
			map[string]float64{"publishes_total failed": 1, "writes_total changed": 1, "publish_failures_total conflict": 1}},
		{"all that can happen at once", writes(), errors.Join(apierrors.NewInternalError(errors.New("x")), errors.Join(forbidden, conflict), fenced, publish.ErrTooLarge),
			map[string]float64{"publishes_total failed": 1, "publish_failures_total conflict": 1, "publish_failures_total forbidden": 1, "publish_failures_total fenced": 1, "publish_failures_total too_large": 1}},
		{"the same twice", writes(), errors.Join(conflict, conflict),
			map[string]float64{"publishes_total failed": 1, "publish_failures_total conflict": 1}},
		{"anything else", writes(), context.Canceled,
			map[string]float64{"publishes_total failed": 1, "publish_failures_total other": 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := serve.NewRecorder()
				r.Published(tc.result, tc.err)
				if diff := cmp.Diff(tc.want, read(t, r)); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		})
	}
}

// TestAFailureLeavesTheTimeOfTheLastSuccess, for that is how stale we are.
func TestAFailureLeavesTheTimeOfTheLastSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve.NewRecorder()
		r.Published(writes(), nil)
		time.Sleep(1500 * time.Millisecond)
		r.Published(writes(), nil)
		time.Sleep(time.Hour)
		r.Published(writes(publish.Changed), errors.New("no"))
		if got := read(t, r)["published_timestamp_seconds"]; got != 946684801.5 {
			t.Errorf("published at %v, want 946684801.5", got)
		}
	})
}

// TestCountersBeginAtZero: an increase from nothing is no increase to Prometheus.
func TestCountersBeginAtZero(t *testing.T) {
	url := start(t, serve.Options{Metrics: []prometheus.Collector{serve.NewRecorder()}})
	const want = `gpu_summary_drift_repaired_total{reason="edited"} 0
gpu_summary_drift_repaired_total{reason="vanished"} 0
gpu_summary_publish_failures_total{reason="conflict"} 0
gpu_summary_publish_failures_total{reason="fenced"} 0
gpu_summary_publish_failures_total{reason="forbidden"} 0
gpu_summary_publish_failures_total{reason="other"} 0
gpu_summary_publish_failures_total{reason="too_large"} 0
gpu_summary_publishes_total{result="failed"} 0
gpu_summary_publishes_total{result="unchanged"} 0
gpu_summary_publishes_total{result="written"} 0
gpu_summary_writes_total{reason="changed"} 0
gpu_summary_writes_total{reason="edited"} 0
gpu_summary_writes_total{reason="missing"} 0
gpu_summary_writes_total{reason="outdated"} 0
gpu_summary_writes_total{reason="unneeded"} 0
gpu_summary_writes_total{reason="vanished"} 0
gpu_summary_written_bytes_total 0`
	if diff := cmp.Diff(want, ours(t, url)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestWrittenBytes(t *testing.T) {
	r := serve.NewRecorder()
	sent := 0
	rt := r.CountBytes(transport(func(*http.Request) (*http.Response, error) { sent++; return nil, errors.New("no") }))
	for path, body := range map[string]string{
		"/api/v1/namespaces/n/configmaps":                           "12345",
		"/api/v1/namespaces/n/configmaps/gpu-summary":               "",
		"/apis/coordination.k8s.io/v1/namespaces/n/leases/one-more": "1234567",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://example.com"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if res, err := rt.RoundTrip(req); err == nil {
			_ = res.Body.Close()
			t.Error("the answer was replaced")
		}
	}
	if got := read(t, r)["written_bytes_total"]; got != 5 || sent != 3 {
		t.Errorf("counted %v bytes, sent %d requests; want 5 and 3", got, sent)
	}
}
