package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

// Row is one number, for each resource or once.
type Row struct {
	ID, Name string
	// Metric is the one that has the number too, and Climbs says what it means when
	// that climbs.
	Metric, Climbs string
	Values         []string
}

// Section is a component in full.
type Section struct {
	Verdict
	Title string
	// Does says what the component is for.
	Does string
	// Columns are resources, or empty where there is one value only.
	Columns []string
	Rows    []Row
}

// row describes a number of a T.
type row[T any] struct {
	id, name, metric, climbs string
	value                    func(n *Numbers, of *T) string
}

// table makes rows with a value for each column. of has what is in a column, nil where
// there is nothing.
func table[T any](n *Numbers, component string, rows []row[T], of []*T) []Row {
	out := make([]Row, 0, len(rows))
	for _, r := range rows {
		values := make([]string, len(of))
		for i := range of {
			values[i] = none
			if of[i] != nil {
				values[i] = r.value(n, of[i])
			}
		}
		out = append(out, Row{component + "-" + r.id, r.name, r.metric, r.climbs, values})
	}
	return out
}

// byResource sorts into columns, of which there are always the same: a page that keeps
// itself up to date changes values and not tables.
func byResource[T any](n *Numbers, of []T, resource func(*T) string) []*T {
	out := make([]*T, len(n.Resources))
	for i := range of {
		if at := slices.Index(n.Resources, resource(&of[i])); at >= 0 {
			out[at] = &of[i]
		}
	}
	return out
}

// Sections lays out everything there is.
func Sections(n Numbers) []Section {
	verdicts := Judge(n)
	section := func(i int, title, does string, columns []string, rows []Row) Section {
		return Section{Verdict: verdicts[i], Title: title, Does: does, Columns: columns, Rows: rows}
	}
	return []Section{
		section(0, "Reflector", "Reads everything once, then follows every change. There is one for each resource.",
			n.Resources, table(&n, ReflectorName, reflectorRows, byResource(&n, n.Reflector, func(r *Reflector) string { return r.Resource }))),
		section(1, "FIFO", "Keeps what was heard in order until the store and the handlers have taken it.",
			n.Resources, table(&n, FIFOName, fifoRows, byResource(&n, n.FIFO, func(q *FIFO) string { return q.Resource }))),
		section(2, "Indexer", "Holds a small record of every object that counts. All passes read from it, and never from the API server.",
			n.Resources, table(&n, IndexerName, indexerRows, byResource(&n, n.Indexer, func(i *Indexer) string { return i.Resource }))),
		section(3, "Workqueue", "Makes one key of all changes that wait, and gives a key that failed back later and later.",
			nil, table(&n, WorkqueueName, workqueueRows, []*Workqueue{&n.Workqueue})),
		section(4, "Reconciler", "Takes a key, reads the stores, counts, and writes what differs from what is published.",
			nil, table(&n, ReconcilerName, reconcilerRows, []*Reconciler{&n.Reconciler})),
		section(5, "Lease", "Of several replicas one makes passes. All others keep their stores warm.",
			nil, table(&n, LeaseName, leaseRows, []*Lease{&n.Lease})),
	}
}

var reflectorRows = []row[Reflector]{
	{"connected", "Connected since", "gpu_summary_watch_connected_timestamp_seconds",
		"It begins anew every five to ten minutes, when the server ends the watch as it does with all. When it begins anew every few seconds, something between here and the server cuts connections.",
		func(n *Numbers, r *Reflector) string {
			if r.Connected.IsZero() {
				return "not open"
			}
			return span(n.At.Sub(r.Connected))
		}},
	{"lastbyte", "Last byte", "gpu_summary_watch_received_timestamp_seconds",
		"Up to about a minute is usual, because that is how often the server sends a bookmark. A longer silence is a connection that is dead and does not know it: all numbers of this resource stand still.",
		func(n *Numbers, r *Reflector) string { return since(n.At, r.LastByte) }},
	{"relists", "Relists", "gpu_summary_watch_lists_total",
		"Everything is read again, which costs the API server more than a day of watching. One now and then is an API server that was restarted; when it climbs steadily, look at the next two.",
		func(_ *Numbers, r *Reflector) string { return page.Number(r.Relists()) }},
	{"expired", "410s", "gpu_summary_watch_expired_total",
		"The server no longer has the version to go on from. When it climbs, we were away for longer than the server remembers, or it remembers little: its watch cache is small for so many changes.",
		func(_ *Numbers, r *Reflector) string { return page.Number(r.Expired) }},
	{"ends", "Watches that ended", "gpu_summary_watch_ends_total",
		"Closed by the server is usual. Broken is a connection that was cut, refused and malformed are answers that make no sense; a proxy in between is the usual suspect.",
		func(_ *Numbers, r *Reflector) string { return parts(r.Ends) }},
	{"bookmarks", "Bookmarks", "gpu_summary_watch_bookmarks_total",
		"It should climb by about one a minute. When it stands still while events come, the server sends none, and each broken connection may cost a relist.",
		func(_ *Numbers, r *Reflector) string { return page.Number(r.Bookmarks) }},
	{"undecodable", "Undecodable versions", "gpu_summary_undecodable_objects_total",
		"Objects that came and could not be decoded. Each is logged with its name, left out, and counts as it did before, or not at all. It is broken in the cluster, or newer than this program.",
		func(_ *Numbers, r *Reflector) string { return page.Number(r.Undecodable) }},
	{"missing", "Objects not up to date", "gpu_summary_cache_missing_objects",
		"So many objects have a newest version that could not be decoded. While it is above zero, the numbers may lack them or have them as they were.",
		func(_ *Numbers, r *Reflector) string { return page.Number(r.Missing) }},
}

var fifoRows = []row[FIFO]{
	{"queued", "Queued", "informer_queued_items",
		"Events come faster than the store takes them in. It jumps with a list and is back in a second; when it climbs and stays, a handler blocks or the CPU is too small.",
		func(_ *Numbers, q *FIFO) string { return page.Number(q.Queued) }},
	{"latency", "Time to handle, on average", "informer_processing_latency_seconds",
		"How long store and handlers take for what comes out at a time: one event, or a whole list. Handlers only enqueue, so more than milliseconds for events means that something blocks them.",
		func(_ *Numbers, q *FIFO) string {
			if q.Handled == 0 {
				return none
			}
			return seconds(q.HandledSeconds / float64(q.Handled))
		}},
	{"handled", "Handled", "informer_processing_latency_seconds",
		"As fast as things change that count. A fast climb is a busy cluster, and no trouble as long as nothing is queued.",
		func(_ *Numbers, q *FIFO) string { return page.Number(q.Handled) }},
}

var indexerRows = []row[Indexer]{
	{"objects", "Objects kept", "gpu_summary_cache_objects",
		"Pods that count, all nodes, and our own ConfigMaps. Memory follows it; when it climbs without end, pods with GPUs are made and never finish.",
		func(_ *Numbers, i *Indexer) string { return page.Number(i.Objects) }},
	{"bytes", "Bytes kept, estimated", "gpu_summary_cache_bytes",
		"About what these records take: a third of a KiB for a pod or a node. When the process grows and this does not, the memory is elsewhere.",
		func(_ *Numbers, i *Indexer) string { return size(i.Bytes) }},
	{"seen", "Objects seen", "gpu_summary_watch_objects_total",
		"All that the server sent, in lists and as events. It climbs with the whole cluster, not with its GPUs; what it costs us is in the next two.",
		func(_ *Numbers, i *Indexer) string { return page.Number(i.Seen) }},
	{"decoded", "of these decoded", "gpu_summary_watch_decoded_objects_total",
		"The others were passed over in the buffer of the connection. It should be far below what was seen for pods; if it is not, most pods mention a GPU, or the server speaks JSON only.",
		func(_ *Numbers, i *Indexer) string {
			return page.Number(i.Decoded) + " (" + share(i.Decoded, i.Seen) + ")"
		}},
	{"dropped", "Objects dropped", "gpu_summary_watch_objects_total",
		"Those that are in no number and went no further. Nothing is kept of them.",
		func(_ *Numbers, i *Indexer) string {
			return page.Number(i.Dropped) + " (" + share(i.Dropped, i.Seen) + ")"
		}},
	{"seenbytes", "Bytes seen", "gpu_summary_watch_bytes_total",
		"The traffic from the API server, as it is after decompression. A selector or a namespace for the watch is what makes it less.",
		func(_ *Numbers, i *Indexer) string {
			if !i.Measured {
				return none
			}
			return size(i.SeenBytes)
		}},
	{"droppedbytes", "Bytes dropped", "gpu_summary_watch_bytes_total",
		"The part of the traffic that was of no use to us. It costs network and a little CPU, and no memory.",
		func(_ *Numbers, i *Indexer) string {
			if !i.Measured {
				return none
			}
			return size(i.DroppedBytes) + " (" + share(i.DroppedBytes, i.SeenBytes) + ")"
		}},
	{"version", "Version of the store", "informer_store_resource_version",
		"That of the last change that counted, as published in gpu-summary/observed. It stands still while nothing changes that counts.",
		func(_ *Numbers, i *Indexer) string { return cmp.Or(i.Version, none) }},
	{"position", "Complete up to", "gpu_summary_watch_position",
		"It moves on with every event and bookmark. When it stands still while the cluster does not, the watch is dead; when it is ahead of the version, all between was of no account.",
		func(_ *Numbers, i *Indexer) string {
			if i.Behind {
				return cmp.Or(i.Position, none) + ", more is on its way"
			}
			return cmp.Or(i.Position, none)
		}},
}

var workqueueRows = []row[Workqueue]{
	{"depth", "Depth", "workqueue_depth",
		"There is one key, so it is 0 or 1, and how long it is 1 is what matters: that is the next number. (client-go also counts a key that waits for the pass before it.)",
		func(_ *Numbers, q *Workqueue) string { return page.Number(q.Depth) }},
	{"oldest", "Oldest key has waited", "gpu_summary_queue_oldest_timestamp_seconds",
		"Up to --settle after a pass that wrote, and no time otherwise. When it climbs, nobody takes keys: a pass hangs, or it is not our turn.",
		func(n *Numbers, q *Workqueue) string {
			if q.Oldest.IsZero() {
				return none
			}
			return span(n.At.Sub(q.Oldest))
		}},
	{"asked", "Changes that asked for a pass", "gpu_summary_pass_requests_total",
		"As fast as things change that count. A steady climb in a quiet cluster is somebody who edits the ConfigMaps, or two controllers that write the same ones.",
		func(_ *Numbers, q *Workqueue) string { return page.Number(q.Asked) }},
	{"ratio", "Changes for each key", "workqueue_adds_total",
		"How many changes and retries became one pass. It climbs under load, and that is what the queue is for: the work stays the same.",
		func(_ *Numbers, q *Workqueue) string {
			return fmt.Sprintf("%.1f (%s keys taken)", q.Ratio(), page.Number(q.HandedOut))
		}},
	{"retries", "Retries", "workqueue_retries_total",
		"Passes that failed and were put back. One after a conflict is usual; when it climbs, something fails again and again, and the reconciler says what.",
		func(_ *Numbers, q *Workqueue) string { return page.Number(q.Retries) }},
	{"running", "Key in hand worked on for", "workqueue_longest_running_processor_seconds",
		"How long the pass that is running has been. When it climbs, the pass hangs on a request; after five minutes /livez fails.",
		func(_ *Numbers, q *Workqueue) string { return seconds(q.RunningSeconds) }},
}
