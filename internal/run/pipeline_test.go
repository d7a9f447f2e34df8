package run

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/queue"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
	pipelinepage "github.com/gpu-summary/gpu-summary-controller/internal/serve/pipeline"
	"github.com/gpu-summary/gpu-summary-controller/internal/watch"
)

// TestPasses: what came of the last pass is known, what it wrote until another writes,
// and how many have failed in a row.
func TestPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p passes
		var result publish.Result
		var fails error
		publisher := p.published(func(context.Context, *count.Snapshot) (publish.Result, error) { return result, fails })
		pass := p.timed(func(ctx context.Context, _ queue.Key) (bool, error) {
			time.Sleep(2 * time.Second)
			result, err := publisher(ctx, nil)
			return result.Wrote(), err
		})
		start := time.Now()
		go func() { _, _ = pass(t.Context(), queue.Summary) }()
		time.Sleep(time.Second)
		if got := p.read(); !got.Running.Equal(start) || !got.Last.IsZero() {
			t.Errorf("meanwhile: %+v", got)
		}
		time.Sleep(time.Minute)
		want := pipelinepage.Reconciler{Last: start, Seconds: 2, Outcome: pipelinepage.Unchanged}
		step := func(when string) {
			t.Helper()
			want.Last = time.Now()
			_, _ = pass(t.Context(), queue.Summary)
			if diff := cmp.Diff(want, p.read()); diff != "" {
				t.Errorf("%s: -want +got\n%s", when, diff)
			}
		}
		if diff := cmp.Diff(want, p.read()); diff != "" {
			t.Errorf("skipped: -want +got\n%s", diff)
		}
		result = publish.Result{Writes: []publish.Write{{Name: "gpu-summary", Action: publish.Updated, Reason: publish.Changed, Changes: []string{"n 1→2"}}}}
		want.Outcome, want.Reasons, want.Changes = pipelinepage.Written, []string{"counts changed"}, []string{"gpu-summary updated: n 1→2"}
		step("written")
		result, fails = publish.Result{}, errors.New("forbidden")
		want.Outcome, want.Error, want.Failures = pipelinepage.Failed, "forbidden", 1
		step("failed")
		want.Failures = 2
		step("failed again")
		fails, want.Outcome, want.Error, want.Failures = nil, pipelinepage.Unchanged, "", 0
		step("well again")
	})
}

// TestLookingUpMetrics: those of client-go by their labels, and those of the recorder.
func TestLookingUpMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	recorder := serve.NewRecorder()
	queued := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "informer_queued_items"}, []string{"name", "resource"})
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "informer_processing_latency_seconds"}, []string{"name", "resource"})
	running := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_longest_running_processor_seconds"}, []string{"name"})
	registry.MustRegister(recorder, queued, latency, running)
	queued.WithLabelValues("gpu-summary-controller", "pods").Set(3)
	queued.WithLabelValues("gpu-summary-controller", "nodes").Set(5)
	queued.WithLabelValues("somebody-else", "pods").Set(7)
	latency.WithLabelValues("gpu-summary-controller-dra", "resourceclaims").Observe(0.25)
	running.WithLabelValues("gpu-summary").Set(11)
	running.WithLabelValues("other").Set(13)
	recorder.Published(publish.Result{Writes: []publish.Write{{Reason: publish.Edited}}}, nil)
	recorder.Published(publish.Result{}, errors.New("x"))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	m := metrics(families)
	if got, want := m.fifo("pods"), (pipelinepage.FIFO{Resource: "pods", Queued: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := m.fifo("resourceclaims"), (pipelinepage.FIFO{Resource: "resourceclaims", Handled: 1, HandledSeconds: 0.25}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := m.value("workqueue_longest_running_processor_seconds", "name", "gpu-summary"); got != 11 {
		t.Errorf("got %v, want 11", got)
	}
	if got := m.by("gpu_summary_publishes_total", "result"); got["written"] != 1 || got["failed"] != 1 || got["unchanged"] != 0 {
		t.Errorf("publishes: %v", got)
	}
	if got := m.by("gpu_summary_writes_total", "reason"); got["edited"] != 1 || got["changed"] != 0 {
		t.Errorf("writes: %v", got)
	}
	if got := m.value("gpu_summary_published_timestamp_seconds"); got == 0 {
		t.Error("when it was right is not known")
	}
}

// TestFailuresAreShort: what was asked for, and what that met.
func TestFailuresAreShort(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://a.very/long/address", Err: errors.New("connection refused")}
	for want, err := range map[string]error{
		"":                               nil,
		"watch pods: connection refused": &watch.SyncError{Resource: "pods", Verb: "watch", Err: refused},
		"list nodes: forbidden":          &watch.SyncError{Resource: "nodes", Verb: "list", Err: errors.New("forbidden")},
	} {
		if got := failed(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
