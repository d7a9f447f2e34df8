package run

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/queue"
	"github.com/gpu-summary/gpu-summary-controller/internal/reconcile"
	pipelinepage "github.com/gpu-summary/gpu-summary-controller/internal/serve/pipeline"
	"github.com/gpu-summary/gpu-summary-controller/internal/watch"
)

// readEvery is how old the numbers of the pipeline may be: reading them looks at every
// object that is kept, and there may be many readers.
const readEvery = time.Second

// inside reads how the process is at work, for the pipeline page.
type inside struct {
	informers *watch.Watch
	queue     *queue.Counted
	turn      leadership
	pulse     *watch.Pulse
	settle    time.Duration
	gather    prometheus.Gatherer
	passes    passes

	mu   sync.Mutex
	last pipelinepage.Numbers
}

// newInside takes the stages to read from, and whoever has counted what was published.
func newInside(informers *watch.Watch, q *queue.Counted, turn leadership, show *surfaces, o *Options) *inside {
	registry := prometheus.NewRegistry()
	registry.MustRegister(show.recorder) // the registry is new, and this the only one in it
	return &inside{
		informers: informers, queue: q, turn: turn, pulse: show.pulse, settle: o.Settle,
		gather: prometheus.Gatherers{registry, legacyregistry.DefaultGatherer},
	}
}

// numbers are those of this moment, or of one within the last second.
func (i *inside) numbers() pipelinepage.Numbers {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := time.Now(); now.Sub(i.last.At) >= readEvery {
		i.last = i.read(now)
	}
	return i.last
}

func (i *inside) read(now time.Time) pipelinepage.Numbers {
	families, _ := i.gather.Gather() // what can be had is better than nothing
	m := metrics(families)
	n := pipelinepage.Numbers{At: now, Resources: i.informers.Resources()}
	heard := i.pulse.Last()
	for _, s := range i.informers.Stats() {
		n.Reflector = append(n.Reflector, reflector(s, heard[s.Resource]))
		n.FIFO = append(n.FIFO, m.fifo(s.Resource))
		n.Indexer = append(n.Indexer, indexer(s))
	}
	q := i.queue.Numbers()
	n.Workqueue = pipelinepage.Workqueue{
		Depth: q.Depth, Oldest: q.Oldest, Asked: q.Asked, Retries: q.Retries, HandedOut: q.HandedOut,
		RunningSeconds: m.value("workqueue_longest_running_processor_seconds", "name", queue.Name),
		SettleSeconds:  i.settle.Seconds(),
	}
	n.Reconciler = i.passes.read()
	n.Reconciler.Publishes = m.by("gpu_summary_publishes_total", "result")
	n.Reconciler.Writes = m.by("gpu_summary_writes_total", "reason")
	n.Reconciler.FailedBy = m.by("gpu_summary_publish_failures_total", "reason")
	if right := m.value("gpu_summary_published_timestamp_seconds"); right > 0 {
		n.Reconciler.Right = time.UnixMilli(int64(right * 1000))
	}
	n.Lease = i.lease()
	return n
}

func (i *inside) lease() pipelinepage.Lease {
	if i.turn.Lead == nil {
		return pipelinepage.Lease{Leading: true}
	}
	s := i.turn.Status()
	l := pipelinepage.Lease{
		Elected: true, Name: s.Lease, Identity: s.Identity, Holder: s.Holder, Leading: s.Leading, Term: s.Term,
		Renewed: s.Renewed, RenewDeadlineSeconds: s.RenewDeadline.Seconds(),
	}
	if s.Lost != nil {
		l.Lost = s.Lost.Error()
	}
	return l
}

func reflector(s watch.SourceStats, heard time.Time) pipelinepage.Reflector {
	r := pipelinepage.Reflector{
		Resource: s.Resource, Synced: s.Synced, Connected: s.Connected, LastByte: heard,
		Lists: s.Lists, LastList: s.LastList, Expired: s.Expired, LastExpired: s.LastExpired, Bookmarks: s.Bookmarks,
		Undecodable: s.Undecodable, Missing: s.Missing, Ends: make(map[string]int64),
	}
	r.Failure = failed(s.Failure)
	for _, end := range watch.Ends {
		r.Ends[string(end)] = s.Ends[end]
	}
	return r
}

// failed says what a request met, without the address, which is as long as this line
// and the same for all.
func failed(err error) string {
	var sync *watch.SyncError
	if !errors.As(err, &sync) {
		return ""
	}
	why := sync.Err
	var request *url.Error
	if errors.As(why, &request) {
		why = request.Err
	}
	return fmt.Sprintf("%s %s: %v", sync.Verb, sync.Resource, why)
}

func indexer(s watch.SourceStats) pipelinepage.Indexer {
	return pipelinepage.Indexer{
		Resource: s.Resource, Objects: s.Kept, Bytes: s.KeptBytes,
		Seen: s.HandedOn + s.Dropped, Decoded: s.Decoded, Dropped: s.Dropped,
		Measured: s.Measured, SeenBytes: s.BytesHandedOn + s.BytesDropped, DroppedBytes: s.BytesDropped,
		Version: s.Version, Position: s.Position, Behind: s.Behind, HandedOn: s.LastHandedOn,
	}
}

// metrics looks up what client-go counts, and what was published.
type metrics []*dto.MetricFamily

// find yields the series of a metric.
func (m metrics) find(name string) []*dto.Metric {
	for _, family := range m {
		if family.GetName() == name {
			return family.GetMetric()
		}
	}
	return nil
}

func label(of *dto.Metric, name string) string {
	for _, pair := range of.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// value adds up the series with these labels, given as names and values.
func (m metrics) value(name string, labels ...string) (sum float64) {
series:
	for _, series := range m.find(name) {
		for i := 0; i < len(labels); i += 2 {
			if label(series, labels[i]) != labels[i+1] {
				continue series
			}
		}
		sum += series.GetGauge().GetValue() + series.GetCounter().GetValue()
	}
	return sum
}

// by has the series of a counter by one label.
func (m metrics) by(name, by string) map[string]int64 {
	out := make(map[string]int64)
	for _, series := range m.find(name) {
		out[label(series, by)] += int64(series.GetCounter().GetValue())
	}
	return out
}

// fifo is what client-go says of one; all informers of ours have a name that begins the
// same.
func (m metrics) fifo(resource string) pipelinepage.FIFO {
	out := pipelinepage.FIFO{Resource: resource}
	ours := func(series *dto.Metric) bool {
		return label(series, "resource") == resource && strings.HasPrefix(label(series, "name"), watch.InformerName)
	}
	for _, series := range m.find("informer_queued_items") {
		if ours(series) {
			out.Queued += int64(series.GetGauge().GetValue())
		}
	}
	for _, series := range m.find("informer_processing_latency_seconds") {
		if ours(series) {
			out.Handled += int64(series.GetHistogram().GetSampleCount())
			out.HandledSeconds += series.GetHistogram().GetSampleSum()
		}
	}
	return out
}

// passes takes note of what comes of passes.
type passes struct {
	mu  sync.Mutex
	now pipelinepage.Reconciler
}

func (p *passes) read() pipelinepage.Reconciler {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// timed takes note of when passes run, and whether they fail.
func (p *passes) timed(f reconcile.Func) reconcile.Func {
	return func(ctx context.Context, key queue.Key) (bool, error) {
		start := time.Now()
		p.begin(start)
		wrote, err := f(ctx, key)
		p.end(start, wrote, err)
		return wrote, err
	}
}

func (p *passes) begin(start time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Running = start
}

func (p *passes) end(start time.Time, wrote bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &p.now
	r.Running, r.Last, r.Seconds = time.Time{}, start, time.Since(start).Seconds()
	switch {
	case err != nil:
		r.Outcome, r.Error, r.Failures = pipelinepage.Failed, err.Error(), r.Failures+1
		return
	case wrote:
		r.Outcome = pipelinepage.Written
	default:
		r.Outcome = pipelinepage.Unchanged
	}
	r.Error, r.Failures = "", 0
}

// published takes note of what is written, and why.
func (p *passes) published(f func(context.Context, *count.Snapshot) (publish.Result, error)) func(context.Context, *count.Snapshot) (publish.Result, error) {
	return func(ctx context.Context, snap *count.Snapshot) (publish.Result, error) {
		result, err := f(ctx, snap)
		if !result.Wrote() {
			return result, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.now.Reasons, p.now.Changes = nil, nil
		for _, reason := range result.Reasons() {
			p.now.Reasons = append(p.now.Reasons, string(reason))
		}
		for _, write := range result.Writes {
			p.now.Changes = append(p.now.Changes, write.String())
		}
		return result, err
	}
}
