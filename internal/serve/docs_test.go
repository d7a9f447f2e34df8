package serve_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/pipeline"
)

func repository(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var documentedMetric = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\| [^|]+ \\|")

// documented returns type and labels of each metric in docs/metrics.md, "gauge node
// resource".
func documented(t *testing.T) map[string]string {
	t.Helper()
	metrics := make(map[string]string)
	for _, row := range documentedMetric.FindAllStringSubmatch(repository(t, "docs", "metrics.md"), -1) {
		var labels []string
		for label := range strings.SplitSeq(row[3], ", ") {
			name, _, _ := strings.Cut(strings.TrimSpace(label), "=")
			labels = append(labels, name)
		}
		slices.Sort(labels)
		metrics[row[1]] = strings.TrimSpace(row[2] + " " + strings.Join(labels, " "))
	}
	return metrics
}

var (
	servedType   = regexp.MustCompile(`(?m)^# TYPE ([a-z_]+) ([a-z]+)$`)
	servedSeries = regexp.MustCompile(`(?m)^([a-z_]+?)(_bucket|_sum|_count)?(\{.*\})? [^ ]+$`)
	servedLabel  = regexp.MustCompile(`([a-z_]+)="`)
)

// served returns the same of everything on /metrics.
func served(t *testing.T) map[string]string {
	t.Helper()
	recorder := serve.NewRecorder()
	recorder.Published(publish.Result{}, nil)
	_, body := get(t, "GET", start(t, serve.Options{Metrics: []prometheus.Collector{
		recorder, serve.NewCollector(serve.CollectorOptions{}, view), pipeline.NewCollector(atWork),
	}})+"/metrics")
	metrics := make(map[string]string)
	for _, line := range servedType.FindAllStringSubmatch(body, -1) {
		metrics[line[1]] = line[2]
	}
	labels := make(map[string]string)
	for _, line := range servedSeries.FindAllStringSubmatch(body, -1) {
		var names []string
		for _, label := range servedLabel.FindAllStringSubmatch(line[3], -1) {
			if label[1] != "le" {
				names = append(names, label[1])
			}
		}
		slices.Sort(names)
		labels[line[1]] = strings.Join(names, " ")
	}
	for name := range metrics {
		metrics[name] = strings.TrimSpace(metrics[name] + " " + labels[name])
	}
	return metrics
}

// elsewhere are metrics that are documented and not served without a cluster.
var elsewhere = []string{
	"rest_client_requests_total", "informer_queued_items", "informer_processing_latency_seconds", "informer_store_resource_version",
	"leader_election_master_status",
}

// atWork is a process of which everything can be said, with all reasons for a watch to
// end.
func atWork() pipeline.Numbers {
	at, ends := time.Now(), map[string]int64{"closed": 1, "broken": 1, "expired": 1, "refused": 1, "malformed": 1, "stopped": 1}
	return pipeline.Numbers{
		At:        at,
		Reflector: []pipeline.Reflector{{Resource: "pods", Connected: at, Ends: ends}},
		Indexer:   []pipeline.Indexer{{Resource: "pods", Measured: true, Position: "1"}},
		Workqueue: pipeline.Workqueue{Oldest: at},
		Lease:     pipeline.Lease{Elected: true, Renewed: at},
	}
}

// TestEveryMetricIsDocumented with its type and labels, and nothing else is.
func TestEveryMetricIsDocumented(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "gpu-summary"})
	defer queue.ShutDown()
	docs, there := documented(t), served(t)
	if len(docs) < 45 {
		t.Fatalf("only %d metrics found in docs/metrics.md", len(docs))
	}
	maps.DeleteFunc(docs, func(name, _ string) bool { return slices.Contains(elsewhere, name) })
	maps.DeleteFunc(there, func(name, _ string) bool { return docs[name] == "" && !strings.HasPrefix(name, "gpu_summary_") })
	if diff := cmp.Diff(there, docs); diff != "" {
		t.Errorf("docs/metrics.md: -served +documented\n%s", diff)
	}
}

// TestTheNumberOfSeriesIsAsDocumented, level by level, with as many sizes as there
// can be.
func TestTheNumberOfSeriesIsAsDocumented(t *testing.T) {
	v := view()
	sum := &v.Snapshot.Summaries[0]
	for _, size := range []int64{2, 4, 16} {
		sum.Fit.Sizes = append(sum.Fit.Sizes, count.Size{Devices: size})
		sum.Models[0].Fit.Sizes = append(sum.Models[0].Fit.Sizes, count.Size{Devices: size})
	}
	v.Snapshot.Rows = v.Snapshot.Rows[:1]
	text := ours(t, start(t, serve.Options{Metrics: []prometheus.Collector{
		serve.NewRecorder(), serve.NewCollector(serve.CollectorOptions{}, func() serve.View { return v }), pipeline.NewCollector(atWork),
	}}))
	got := map[string]int{}
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "gpu_summary_node_"):
			got["for each node, resource and source"]++
		case strings.HasPrefix(line, "gpu_summary_model_"):
			got["for each resource and model"]++
		case strings.Contains(line, `resource="nvidia.com/gpu"`):
			got["for each resource"]++
		case strings.Contains(line, `resource="pods"`):
			got["for each watched resource, of which there are 6 at most"]++
		default:
			got["all else that is ours"]++
		}
	}
	want := map[string]int{"for each node, resource and source": 6, "for each resource and model": 19, "for each resource": 30,
		"for each watched resource, of which there are 6 at most": 21}
	if got["all else that is ours"] >= 50 {
		t.Errorf("%d others", got["all else that is ours"])
	}
	delete(got, "all else that is ours")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	docs := repository(t, "docs", "metrics.md")
	for _, row := range []string{"| for each node, resource and source | 6 |", "| for each resource and model | 19 at most |", "| for each resource | 30 at most |", "| for each watched resource, of which there are 6 at most | 21 at most |",
		"| all else that is ours | fewer than 50 |"} {
		if !strings.Contains(docs, row) {
			t.Errorf("docs/metrics.md lacks %q", row)
		}
	}
}
