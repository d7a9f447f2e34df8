package serve

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // workqueue_*, rest_client_* and informer_* metrics

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// View is what a scrape is answered from: one controller at one moment.
type View struct {
	// Snapshot is the latest answer, nil before the first pass.
	Snapshot *count.Snapshot
	// Taken is when the snapshot was.
	Taken time.Time
	// Leading is whether it is this replica's turn to publish.
	Leading bool
	// Watches says for each watched resource when the API server last sent a byte.
	// A time of zero is left out.
	Watches map[string]time.Time
}

// CollectorOptions says what a collector shows.
type CollectorOptions struct {
	// Version goes into gpu_summary_build_info.
	Version string
	// OmitNodes leaves out the series of single nodes, six for each row.
	OmitNodes bool
}

// NewCollector makes metrics of the latest snapshot, anew for each scrape: a node
// that is gone has no series left over. Whatever the snapshot says is shown by the
// leader alone, so that a sum over all replicas counts nothing twice.
// docs/metrics.md is the promise made to readers.
func NewCollector(o CollectorOptions, view func() View) prometheus.Collector {
	return &collector{options: o, view: view}
}

type collector struct {
	options CollectorOptions
	view    func() View
}

var (
	buildInfo = newDesc("build_info", "Always 1; the version is in the label.", "version")
	leader    = newDesc("leader", "1 on the replica whose turn it is to publish, 0 on all others.")
	taken     = newDesc("snapshot_timestamp_seconds", "When this replica last counted. Also while nothing changes, a pass is made every --resync.")
	received  = newDesc("watch_received_timestamp_seconds",
		"When the API server last sent a byte on the watch of the resource. It sends one about every minute, also when there is nothing to tell.", "resource")
)

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

const prefix = "gpu_summary_"

// Describe names every metric there may be.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{buildInfo, leader, taken, received} {
		ch <- desc
	}
	describeCapacity(ch)
}

// Collect answers a scrape.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	view, out := c.view(), sink(ch)
	out.set(buildInfo, 1, c.options.Version)
	out.set(leader, oneIf(view.Leading))
	for resource, at := range view.Watches {
		out.setTime(received, at, resource)
	}
	if view.Snapshot == nil {
		return
	}
	out.setTime(taken, view.Taken)
	if view.Leading {
		out.capacity(view.Snapshot, !c.options.OmitNodes)
	}
}

// sink takes gauges.
type sink chan<- prometheus.Metric

func (s sink) set(desc *prometheus.Desc, value float64, labels ...string) {
	for i, label := range labels {
		// One bad byte in a model's name must not cost the whole metric.
		labels[i] = strings.ToValidUTF8(label, "\uFFFD")
	}
	metric, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	if err != nil {
		metric = prometheus.NewInvalidMetric(desc, err)
	}
	s <- metric
}

func (s sink) setTime(desc *prometheus.Desc, at time.Time, labels ...string) {
	if !at.IsZero() {
		s.set(desc, float64(at.UnixMilli())/1000, labels...)
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// maxScrapes is how many readers of /metrics are answered at a time: two Prometheus
// servers and somebody who looks. With 65,000 nodes an answer takes 330 MB to make.
const maxScrapes = 3

// metrics serves the collectors, from a registry of their own so that a process may
// have several controllers, and all that client-go and the Go runtime have
// registered with component-base.
func metrics(collectors []prometheus.Collector) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	for _, collector := range collectors {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return promhttp.HandlerFor(prometheus.Gatherers{registry, legacyregistry.DefaultGatherer}, promhttp.HandlerOpts{
		// What can be served is, and promhttp_metric_handler_errors_total counts the
		// scrapes that something was missing from.
		ErrorHandling:       promhttp.ContinueOnError,
		Registry:            registry,
		MaxRequestsInFlight: maxScrapes,
	}), nil
}
