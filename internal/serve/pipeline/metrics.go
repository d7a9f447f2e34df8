package pipeline

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// NewCollector makes metrics of those numbers that nothing else has a metric for. Each
// number on the page names the one that has it.
func NewCollector(read func() Numbers) prometheus.Collector { return collector(read) }

type collector func() Numbers

const prefix = "gpu_summary_"

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

// ofResources are the metrics with a series for each watched resource.
var ofResources = struct {
	connected, lists, expired, ends, bookmarks, undecodable, missing *prometheus.Desc
	objects, bytes, seen, decoded, seenBytes, position               *prometheus.Desc
}{
	connected:   newDesc("watch_connected_timestamp_seconds", "Since when the watch is open. Absent while none is.", "resource"),
	lists:       newDesc("watch_lists_total", "How often everything was read, in a stream or in pages. All but the first are relists.", "resource"),
	expired:     newDesc("watch_expired_total", "Answers that the server no longer has the version that was asked for (410).", "resource"),
	ends:        newDesc("watch_ends_total", "Watches that have ended, by why.", "resource", "reason"),
	bookmarks:   newDesc("watch_bookmarks_total", "Bookmarks: events that only say how far the server is.", "resource"),
	undecodable: newDesc("undecodable_objects_total", "Versions of objects that could not be decoded, and were logged and left out. What was known of the object before stays.", "resource"),
	missing:     newDesc("cache_missing_objects", "Objects whose newest version could not be decoded: the cache has an older one, or none.", "resource"),
	objects:     newDesc("cache_objects", "Objects that the cache keeps.", "resource"),
	bytes:       newDesc("cache_bytes", "About how many bytes they take.", "resource"),
	seen:        newDesc("watch_objects_total", "Objects that came in lists and events: handed_on to the cache, or dropped because they are in no number.", "resource", "result"),
	decoded:     newDesc("watch_decoded_objects_total", "Those of them that had to be decoded.", "resource"),
	seenBytes:   newDesc("watch_bytes_total", "The size of those objects as they were sent. Only of pods and nodes.", "resource", "result"),
	position:    newDesc("watch_position", "The resourceVersion up to which the cache has everything.", "resource"),
}

var (
	asked   = newDesc("pass_requests_total", "Changes that asked for a pass. All that wait become one.")
	oldest  = newDesc("queue_oldest_timestamp_seconds", "Since when the oldest key waits to be taken. Absent while none does.")
	term    = newDesc("lease_term", "The term in which this replica holds the lease, 0 for one that never held it.")
	renewed = newDesc("lease_renewed_timestamp_seconds", "When the lease was last renewed by this replica. Absent until it was.")
)

// Describe names every metric there may be.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	r := ofResources
	for _, desc := range []*prometheus.Desc{
		r.connected, r.lists, r.expired, r.ends, r.bookmarks, r.undecodable, r.missing,
		r.objects, r.bytes, r.seen, r.decoded, r.seenBytes, r.position, asked, oldest, term, renewed,
	} {
		ch <- desc
	}
}

// sink takes metrics. Labels are names of resources and words of ours.
type sink chan<- prometheus.Metric

func (s sink) count(desc *prometheus.Desc, value int64, labels ...string) {
	s <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
}

func (s sink) gauge(desc *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func (s sink) time(desc *prometheus.Desc, at time.Time, labels ...string) {
	if !at.IsZero() {
		s.gauge(desc, float64(at.UnixMilli())/1000, labels...)
	}
}

// Collect answers a scrape.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	n, out := c(), sink(ch)
	for _, r := range n.Reflector {
		out.time(ofResources.connected, r.Connected, r.Resource)
		out.count(ofResources.lists, r.Lists, r.Resource)
		out.count(ofResources.expired, r.Expired, r.Resource)
		for why, times := range r.Ends {
			out.count(ofResources.ends, times, r.Resource, why)
		}
		out.count(ofResources.bookmarks, r.Bookmarks, r.Resource)
		out.count(ofResources.undecodable, r.Undecodable, r.Resource)
		out.gauge(ofResources.missing, float64(r.Missing), r.Resource)
	}
	for _, i := range n.Indexer {
		out.indexer(i)
	}
	out.count(asked, n.Workqueue.Asked)
	out.time(oldest, n.Workqueue.Oldest)
	if n.Lease.Elected {
		out.gauge(term, float64(n.Lease.Term))
		out.time(renewed, n.Lease.Renewed)
	}
}

const (
	handedOn = "handed_on"
	dropped  = "dropped"
)

func (s sink) indexer(i Indexer) {
	s.gauge(ofResources.objects, float64(i.Objects), i.Resource)
	s.gauge(ofResources.bytes, float64(i.Bytes), i.Resource)
	s.count(ofResources.seen, i.Seen-i.Dropped, i.Resource, handedOn)
	s.count(ofResources.seen, i.Dropped, i.Resource, dropped)
	s.count(ofResources.decoded, i.Decoded, i.Resource)
	if i.Measured {
		s.count(ofResources.seenBytes, i.SeenBytes-i.DroppedBytes, i.Resource, handedOn)
		s.count(ofResources.seenBytes, i.DroppedBytes, i.Resource, dropped)
	}
	// A resourceVersion is a number on every server that we know, and need not be one.
	if position, err := strconv.ParseUint(i.Position, 10, 64); err == nil {
		s.gauge(ofResources.position, float64(position), i.Resource)
	}
}
