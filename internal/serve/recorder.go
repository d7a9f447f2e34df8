package serve

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// Recorder counts what publishing did. It is a collector; every controller has one
// of its own.
type Recorder struct {
	publishes, failures, writes, drift *prometheus.CounterVec
	bytes                              prometheus.Counter
	right                              *prometheus.GaugeVec
}

// Why a publish failed, as a label.
const (
	failedConflict  = "conflict"
	failedFenced    = "fenced"
	failedTooLarge  = "too_large"
	failedForbidden = "forbidden"
	failedOther     = "other"
)

// Reasons of writes, as labels.
var reasonLabels = map[publish.Reason]string{
	publish.Missing:  "missing",
	publish.Outdated: "outdated",
	publish.Changed:  "changed",
	publish.Vanished: "vanished",
	publish.Edited:   "edited",
	publish.Unneeded: "unneeded",
}

// driftReasons are those for which somebody else is to blame.
var driftReasons = []publish.Reason{publish.Vanished, publish.Edited}

// NewRecorder makes a recorder that shows zero for all there is to count, so that
// the first increase is seen as one.
func NewRecorder() *Recorder {
	counter := func(name, help, label string, values ...string) *prometheus.CounterVec {
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, []string{label})
		for _, value := range values {
			vec.WithLabelValues(value)
		}
		return vec
	}
	r := &Recorder{
		publishes: counter("publishes_total", "Attempts to make the ConfigMaps right: written, unchanged (nothing to write) or failed.",
			"result", "written", "unchanged", "failed"),
		failures: counter("publish_failures_total", "Failed publishes by what they met; one that met several things counts for each. A fenced one had counted from an older observation than the published one.",
			"reason", failedConflict, failedFenced, failedTooLarge, failedForbidden, failedOther),
		writes: counter("writes_total", "ConfigMaps written or deleted, by why.", "reason"),
		drift: counter("drift_repaired_total", "ConfigMaps put right after somebody else had edited or deleted them; also in writes.",
			"reason"),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "written_bytes_total", Help: "Bytes sent to the API server in requests about ConfigMaps."}),
		right: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "published_timestamp_seconds",
			Help: "When the ConfigMaps were last made right, or found right, by this replica. Absent until then."}, nil),
	}
	for _, label := range reasonLabels {
		r.writes.WithLabelValues(label)
	}
	for _, reason := range driftReasons {
		r.drift.WithLabelValues(reasonLabels[reason])
	}
	return r
}

// Published takes what publish.Publisher.Publish returned.
func (r *Recorder) Published(result publish.Result, err error) {
	for _, write := range result.Writes {
		label := reasonLabels[write.Reason]
		r.writes.WithLabelValues(label).Inc()
		if slices.Contains(driftReasons, write.Reason) {
			r.drift.WithLabelValues(label).Inc()
		}
	}
	if err != nil {
		r.publishes.WithLabelValues("failed").Inc()
		for _, reason := range failureReasons(err) {
			r.failures.WithLabelValues(reason).Inc()
		}
		return
	}
	outcome := "unchanged"
	if result.Wrote() {
		outcome = "written"
	}
	r.publishes.WithLabelValues(outcome).Inc()
	r.right.WithLabelValues().Set(float64(time.Now().UnixMilli()) / 1000)
}

// failureReasons lists each reason that occurs in an error once.
func failureReasons(err error) (reasons []string) {
	for _, known := range []struct {
		reason string
		is     func(error) bool
	}{
		{failedConflict, apierrors.IsConflict},
		{failedFenced, func(err error) bool { return errors.Is(err, publish.ErrBehind) }},
		{failedTooLarge, func(err error) bool { return errors.Is(err, publish.ErrTooLarge) }},
		{failedForbidden, apierrors.IsForbidden},
	} {
		if within(err, known.is) {
			reasons = append(reasons, known.reason)
		}
	}
	if len(reasons) == 0 {
		return []string{failedOther}
	}
	return reasons
}

// within asks every branch of an error. The functions of apierrors look at the
// first one that has a status and no further.
func within(err error, is func(error) bool) bool {
	if is(err) {
		return true
	}
	var joined interface{ Unwrap() []error }
	return errors.As(err, &joined) && slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return within(err, is) })
}

// Describe names every metric there may be.
func (r *Recorder) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range r.collectors() {
		c.Describe(ch)
	}
}

// Collect answers a scrape.
func (r *Recorder) Collect(ch chan<- prometheus.Metric) {
	for _, c := range r.collectors() {
		c.Collect(ch)
	}
}

func (r *Recorder) collectors() []prometheus.Collector {
	return []prometheus.Collector{r.publishes, r.failures, r.writes, r.drift, r.bytes, r.right}
}

// CountBytes is for rest.Config.Wrap: it counts what is sent in requests about
// ConfigMaps, tries that failed included.
func (r *Recorder) CountBytes(next http.RoundTripper) http.RoundTripper {
	return counted{next: next, bytes: r.bytes}
}

type counted struct {
	next  http.RoundTripper
	bytes prometheus.Counter
}

func (c counted) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.ContentLength > 0 && strings.Contains(req.URL.Path, "/configmaps") {
		c.bytes.Add(float64(req.ContentLength))
	}
	return c.next.RoundTrip(req)
}

// WrappedRoundTripper is how client-go looks for the transport below.
func (c counted) WrappedRoundTripper() http.RoundTripper { return c.next }
