package serve_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

// snapshot has a node of each source, and demand without a node. Every number is
// another one, so that none can stand in for another.
func snapshot() *count.Snapshot {
	numbers := func(n int64) count.Numbers {
		return count.Numbers{Capacity: n + 6, Allocatable: n + 5, Requested: n + 4, Free: n + 3, UsableFree: n + 2, Overcommitted: n + 1}
	}
	fit := func(n int64) count.Fit {
		return count.Fit{LargestFree: n, Sizes: []count.Size{{Devices: 1, Placeable: n + 1, Stranded: n + 2}, {Devices: 8, Placeable: n + 3, Stranded: n + 4}}}
	}
	return &count.Snapshot{
		NodesKnown: true,
		Summaries: []count.Summary{{
			Resource: "nvidia.com/gpu", Numbers: numbers(10), Orphaned: 17, Nodes: 2, Fit: fit(20),
			Pending: count.Pending{Devices: 30, Pods: 31, Reasons: []count.Reason{{Wait: count.Untried, Devices: 32, Pods: 33}}, AnyModel: 34, SeveralModels: 35, AbsentModel: 36},
			Models:  []count.Model{{Name: "A100", Nodes: 3, Numbers: numbers(40), Pending: 47, Fit: fit(50)}},
		}},
		Rows: []count.Row{
			{Node: "a", Resource: "nvidia.com/gpu", Source: count.DevicePlugin, Model: "A100", Numbers: numbers(60)},
			{Node: "b", Resource: "nvidia.com/gpu", Source: count.DynamicResources, Model: "A100", Numbers: numbers(70)},
		},
		DRA: &count.DRAStatus{State: count.DRASynced, Pools: make([]count.PoolIssue, 3), Classes: make([]count.ClassIssue, 2)},
	}
}

const process = `gpu_summary_build_info{version="v1"} 1
gpu_summary_leader 1
gpu_summary_snapshot_timestamp_seconds 1000.5
gpu_summary_watch_received_timestamp_seconds{resource="pods"} 2000
`

const cluster = `gpu_summary_allocatable_devices{resource="nvidia.com/gpu"} 15
gpu_summary_capacity_devices{resource="nvidia.com/gpu"} 16
gpu_summary_free_devices{resource="nvidia.com/gpu"} 13
gpu_summary_largest_free_devices{resource="nvidia.com/gpu"} 20
gpu_summary_nodes{resource="nvidia.com/gpu"} 2
gpu_summary_orphaned_devices{resource="nvidia.com/gpu"} 17
gpu_summary_overcommitted_devices{resource="nvidia.com/gpu"} 11
gpu_summary_pending_devices{reason="gated",resource="nvidia.com/gpu"} 0
gpu_summary_pending_devices{reason="nominated",resource="nvidia.com/gpu"} 0
gpu_summary_pending_devices{reason="unschedulable",resource="nvidia.com/gpu"} 0
gpu_summary_pending_devices{reason="untried",resource="nvidia.com/gpu"} 32
gpu_summary_pending_other_devices{models="absent",resource="nvidia.com/gpu"} 36
gpu_summary_pending_other_devices{models="any",resource="nvidia.com/gpu"} 34
gpu_summary_pending_other_devices{models="several",resource="nvidia.com/gpu"} 35
gpu_summary_pending_pods{reason="gated",resource="nvidia.com/gpu"} 0
gpu_summary_pending_pods{reason="nominated",resource="nvidia.com/gpu"} 0
gpu_summary_pending_pods{reason="unschedulable",resource="nvidia.com/gpu"} 0
gpu_summary_pending_pods{reason="untried",resource="nvidia.com/gpu"} 33
gpu_summary_placeable_pods{resource="nvidia.com/gpu",size="1"} 21
gpu_summary_placeable_pods{resource="nvidia.com/gpu",size="8"} 23
gpu_summary_requested_devices{resource="nvidia.com/gpu"} 14
gpu_summary_stranded_devices{resource="nvidia.com/gpu",size="1"} 22
gpu_summary_stranded_devices{resource="nvidia.com/gpu",size="8"} 24
gpu_summary_usable_free_devices{resource="nvidia.com/gpu"} 12
`

const model = `gpu_summary_model_allocatable_devices{model="A100",resource="nvidia.com/gpu"} 45
gpu_summary_model_capacity_devices{model="A100",resource="nvidia.com/gpu"} 46
gpu_summary_model_free_devices{model="A100",resource="nvidia.com/gpu"} 43
gpu_summary_model_largest_free_devices{model="A100",resource="nvidia.com/gpu"} 50
gpu_summary_model_nodes{model="A100",resource="nvidia.com/gpu"} 3
gpu_summary_model_overcommitted_devices{model="A100",resource="nvidia.com/gpu"} 41
gpu_summary_model_pending_devices{model="A100",resource="nvidia.com/gpu"} 47
gpu_summary_model_placeable_pods{model="A100",resource="nvidia.com/gpu",size="1"} 51
gpu_summary_model_placeable_pods{model="A100",resource="nvidia.com/gpu",size="8"} 53
gpu_summary_model_requested_devices{model="A100",resource="nvidia.com/gpu"} 44
gpu_summary_model_stranded_devices{model="A100",resource="nvidia.com/gpu",size="1"} 52
gpu_summary_model_stranded_devices{model="A100",resource="nvidia.com/gpu",size="8"} 54
gpu_summary_model_usable_free_devices{model="A100",resource="nvidia.com/gpu"} 42
`

const dra = `gpu_summary_dra_state{state="absent"} 0
gpu_summary_dra_state{state="forbidden"} 0
gpu_summary_dra_state{state="synced"} 1
gpu_summary_dra_state{state="syncing"} 0
gpu_summary_dra_state{state="unreachable"} 0
gpu_summary_dra_uncounted_classes 2
gpu_summary_dra_uncounted_pools 3
`

// node is the series of one node, whose numbers count up from n.
func node(name, source string, n int) string {
	var b strings.Builder
	for i, number := range []string{"overcommitted", "usable_free", "free", "requested", "allocatable", "capacity"} {
		fmt.Fprintf(&b, "gpu_summary_node_%s_devices{model=\"A100\",node=%q,resource=\"nvidia.com/gpu\",source=%q} %d\n", number, name, source, n+i+1)
	}
	return b.String()
}

func view() serve.View {
	return serve.View{
		Snapshot: snapshot(), Taken: time.UnixMilli(1_000_500), Leading: true,
		Watches: map[string]time.Time{"pods": time.Unix(2000, 0), "nodes": {}},
	}
}

// ours scrapes a server and returns the series of this project, sorted.
func ours(t *testing.T, url string) string {
	t.Helper()
	code, body := get(t, "GET", url+"/metrics")
	if code != 200 {
		t.Fatalf("/metrics: %d %s", code, body)
	}
	return sorted(body)
}

func sorted(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return !strings.HasPrefix(line, "gpu_summary_") })
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestASnapshotAsMetrics compares all series there are, in each situation in which
// there are others.
func TestASnapshotAsMetrics(t *testing.T) {
	all := process + cluster + model + node("a", "device-plugin", 60) + node("b", "dra", 70) + dra
	standby := strings.Replace(process, "leader 1", "leader 0", 1)
	for _, tc := range []struct {
		name    string
		change  func(*serve.View)
		options serve.CollectorOptions
		want    string
	}{
		{name: "a leader", want: all},
		{name: "a standby, so that sums over replicas count nothing twice", change: func(v *serve.View) { v.Leading = false }, want: standby},
		{name: "before the first pass", change: func(v *serve.View) { v.Snapshot = nil },
			want: strings.Replace(process, "gpu_summary_snapshot_timestamp_seconds 1000.5\n", "", 1)},
		{name: "a node that is gone", change: func(v *serve.View) { v.Snapshot.Rows = v.Snapshot.Rows[:1] },
			want: process + cluster + model + node("a", "device-plugin", 60) + dra},
		{name: "no single nodes", options: serve.CollectorOptions{OmitNodes: true}, want: process + cluster + model + dra},
		{name: "DRA not asked for", change: func(v *serve.View) { v.Snapshot.DRA = nil },
			want: strings.Replace(all, dra, "", 1)},
		{name: "nodes not watched: only what pods alone can tell", change: func(v *serve.View) { v.Snapshot.NodesKnown = false },
			want: process + dra + without(all, "capacity", "allocatable", "free", "overcommitted", "orphaned", "placeable", "stranded", "build_", "leader", "timestamp", "dra_", "model_pending", "pending_other")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := view()
			if tc.change != nil {
				tc.change(&v)
			}
			tc.options.Version = "v1"
			url := start(t, serve.Options{Metrics: []prometheus.Collector{serve.NewCollector(tc.options, func() serve.View { return v })}})
			if diff := cmp.Diff(sorted(tc.want), ours(t, url)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// without drops the lines that contain one of the words in the name of the metric.
func without(text string, words ...string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "{")
		if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) }) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// TestScrapesSeeTheLatest: nothing is kept from one scrape to the next.
func TestScrapesSeeTheLatest(t *testing.T) {
	v := view()
	url := start(t, serve.Options{Metrics: []prometheus.Collector{serve.NewCollector(serve.CollectorOptions{}, func() serve.View { return v })}})
	if !strings.Contains(ours(t, url), `node="b"`) {
		t.Fatal("no series for node b")
	}
	v = view()
	v.Snapshot.Rows = nil
	if text := ours(t, url); strings.Contains(text, "gpu_summary_node_") {
		t.Errorf("series of nodes that are gone:\n%s", text)
	}
}

// TestABadByteCostsOneCharacter: what a driver calls its devices is not ours to
// choose, and must not cost the scrape.
func TestABadByteCostsOneCharacter(t *testing.T) {
	v := view()
	v.Snapshot.Rows[0].Model = "H\xff100\n\""
	url := start(t, serve.Options{Metrics: []prometheus.Collector{serve.NewCollector(serve.CollectorOptions{}, func() serve.View { return v })}})
	if text := ours(t, url); !strings.Contains(text, `model="H�100\n\"",node="a"`) || !strings.Contains(text, `node="b"`) {
		t.Errorf("got\n%s", text)
	}
}

// TestTwoControllersInOneProcess do not see each other's metrics.
func TestTwoControllersInOneProcess(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		url := start(t, serve.Options{Metrics: []prometheus.Collector{
			serve.NewRecorder(), serve.NewCollector(serve.CollectorOptions{Version: version}, view),
		}})
		if text := ours(t, url); !strings.Contains(text, version) || strings.Count(text, "build_info") != 1 {
			t.Errorf("got\n%s", text)
		}
	}
}

// TestNamesFollowConventions is promtool check metrics, of all that is served.
func TestNamesFollowConventions(t *testing.T) {
	url := start(t, serve.Options{Metrics: []prometheus.Collector{serve.NewRecorder(), serve.NewCollector(serve.CollectorOptions{}, view)}})
	_, body := get(t, "GET", url+"/metrics")
	for _, want := range []string{"gpu_summary_leader", "gpu_summary_writes_total", "go_goroutines", "process_cpu_seconds_total", "promhttp_metric_handler_errors_total"} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("%s is not served", want)
		}
	}
	problems, err := promlint.New(bytes.NewBufferString(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestCollectorsKeepTheirWord: a pedantic registry refuses what was not described.
func TestCollectorsKeepTheirWord(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(serve.NewRecorder(), serve.NewCollector(serve.CollectorOptions{}, view))
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}

// BenchmarkScrape of the largest cluster there is, 65,000 nodes.
func BenchmarkScrape(b *testing.B) {
	v := view()
	row := v.Snapshot.Rows[0]
	v.Snapshot.Rows = nil
	for i := range 65_000 {
		row.Node = fmt.Sprintf("node-%05d", i)
		v.Snapshot.Rows = append(v.Snapshot.Rows, row)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(serve.NewCollector(serve.CollectorOptions{}, func() serve.View { return v }))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
