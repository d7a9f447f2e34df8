package pipeline_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/pipeline"
)

func get(n pipeline.Numbers, path string) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	for pattern, handler := range pipeline.Handlers(page.Layout{}, func() pipeline.Numbers { return n }) {
		mux.Handle("GET "+pattern, handler)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// TestThePageShowsWhereTheTroubleIs: in words above the drawing, in the drawing, and
// beside the numbers, with the rule.
func TestThePageShowsWhereTheTroubleIs(t *testing.T) {
	n := healthy()
	whole := get(n, "/pipeline").Body.String()
	if !strings.Contains(whole, "Nothing is wrong, and nothing waits.") || strings.Contains(whole, `trouble"`) {
		t.Error("a healthy one is not well")
	}
	n.Reconciler.Failures, n.Reconciler.Outcome, n.Reconciler.Error = 3, pipeline.Failed, "<b>forbidden</b>"
	n.Reflector[0].LastByte = ago(time.Hour)
	whole = get(n, "/pipeline").Body.String()
	for _, want := range []string{
		`class="verdict trouble">Reflector: nothing has been heard on the watch of pods for 1h 0m. Reconciler: 3 passes have failed in a row: &lt;b&gt;forbidden&lt;/b&gt;.</p>`,
		`<a href="#reflector"><g class="component trouble">`, `<a href="#reconciler"><g class="component trouble">`, `<a href="#fifo"><g class="component ok">`,
		`<span class="is trouble">trouble</span> nothing has been heard`, "Trouble: a request failed",
		`failed: &lt;b&gt;forbidden`,
	} {
		if !strings.Contains(whole, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(whole, "<b>forbidden") {
		t.Error("what an API server says is taken for HTML")
	}
}

var (
	anID      = regexp.MustCompile(` id="([^"]+)"`)
	anAddress = regexp.MustCompile(`(?:href|src)="([^"]+)"`)
	inline    = regexp.MustCompile(`(?i)<style|style="|<script>|\son[a-z]+="|javascript:`)
)

// TestThePageKeepsThePolicy: no script and no style in it, nothing from elsewhere, and
// no two elements of one name, by which it is kept up to date.
func TestThePageKeepsThePolicy(t *testing.T) {
	response := get(healthy(), "/pipeline")
	whole := response.Body.String()
	if policy := response.Header().Get("Content-Security-Policy"); response.Code != http.StatusOK || policy != page.Policy {
		t.Errorf("status %d, policy %q", response.Code, policy)
	}
	if found := inline.FindString(whole); found != "" {
		t.Errorf("the page has %q", found)
	}
	for _, m := range anAddress.FindAllStringSubmatch(whole, -1) {
		if !strings.HasPrefix(m[1], "./") && !strings.HasPrefix(m[1], "#") {
			t.Errorf("the address %s is not relative", m[1])
		}
	}
	var ids []string
	for _, m := range anID.FindAllStringSubmatch(whole, -1) {
		if slices.Contains(ids, m[1]) {
			t.Errorf("two elements are called %s", m[1])
		}
		ids = append(ids, m[1])
	}
	for _, m := range anAddress.FindAllStringSubmatch(whole, -1) {
		if id, ok := strings.CutPrefix(m[1], "#"); ok && !slices.Contains(ids, id) {
			t.Errorf("a link leads to %s, which is not there", m[1])
		}
	}
	if is := get(healthy(), "/pipeline.css").Header().Get("Content-Type"); is != "text/css; charset=utf-8" {
		t.Errorf("the style is %s", is)
	}
}

// TestThePageChangesValuesOnly: whatever the numbers are, the same elements are there,
// so that it can be kept up to date without losing what a reader has opened.
func TestThePageChangesValuesOnly(t *testing.T) {
	n := healthy()
	before := get(n, "/pipeline").Body.String()
	n.Reflector, n.FIFO, n.Indexer = n.Reflector[:2], n.FIFO[:2], append(n.Indexer, pipeline.Indexer{Resource: "resourceslices", Objects: 3})
	standby(&n)
	after := get(n, "/pipeline").Body.String()
	if a, b := anID.FindAllString(before, -1), anID.FindAllString(after, -1); !slices.Equal(a, b) {
		t.Errorf("elements %q became %q", a, b)
	}
	if !strings.Contains(after, `id="indexer-objects-4" data-live class="num">3</td>`) {
		t.Error("the slices of DRA are not in their column")
	}
}

var documented = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")

// TestEveryNumberNamesItsMetric, which is documented, and says what it means when it
// climbs; and every metric of ours is that of a number.
func TestEveryNumberNamesItsMetric(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	documents := map[string]bool{}
	for _, m := range documented.FindAllStringSubmatch(string(text), -1) {
		documents[m[1]] = true
	}
	named := map[string]bool{}
	rows := 0
	for _, section := range pipeline.Sections(healthy()) {
		for _, row := range section.Rows {
			rows++
			named[row.Metric] = true
			if !documents[row.Metric] {
				t.Errorf("%s: %s is not in docs/metrics.md", row.ID, row.Metric)
			}
			if len(row.Climbs) < 20 || !strings.HasSuffix(strings.TrimSuffix(row.Climbs, ")"), ".") {
				t.Errorf("%s: %q is no sentence", row.ID, row.Climbs)
			}
			for _, value := range row.Values {
				if value == "" || strings.Contains(value, "%!") {
					t.Errorf("%s: a value is %q", row.ID, value)
				}
			}
		}
	}
	if rows < 35 {
		t.Errorf("only %d numbers", rows)
	}
	for name := range collect(t, healthy()) {
		if metric, _, _ := strings.Cut(name, "{"); !named[metric] {
			t.Errorf("no number has the metric %s", metric)
		}
	}
}

// collect returns the series by name and labels.
func collect(t *testing.T, n pipeline.Numbers) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(pipeline.NewCollector(func() pipeline.Numbers { return n }))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			var labels []string
			for _, pair := range series.GetLabel() {
				labels = append(labels, pair.GetName()+"="+pair.GetValue())
			}
			out[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = series.GetGauge().GetValue() + series.GetCounter().GetValue()
		}
	}
	return out
}

// TestMetrics have the numbers of the page.
func TestMetrics(t *testing.T) {
	n := healthy()
	n.Reflector[0].Undecodable, n.Reflector[0].Missing = 5, 2
	n.Workqueue.Oldest = ago(time.Minute)
	n.Indexer[1].Position = "not a number"
	got := collect(t, n)
	for series, want := range map[string]float64{
		"gpu_summary_watch_connected_timestamp_seconds{resource=pods}":    float64(ago(5 * time.Minute).Unix()),
		"gpu_summary_watch_lists_total{resource=pods}":                    2,
		"gpu_summary_watch_expired_total{resource=pods}":                  1,
		"gpu_summary_watch_ends_total{reason=closed,resource=pods}":       11,
		"gpu_summary_watch_ends_total{reason=refused,resource=pods}":      0,
		"gpu_summary_watch_bookmarks_total{resource=pods}":                60,
		"gpu_summary_undecodable_objects_total{resource=pods}":            5,
		"gpu_summary_cache_missing_objects{resource=pods}":                2,
		"gpu_summary_cache_objects{resource=nodes}":                       1523,
		"gpu_summary_cache_bytes{resource=nodes}":                         500_000,
		"gpu_summary_watch_objects_total{resource=pods,result=dropped}":   1_200_000,
		"gpu_summary_watch_objects_total{resource=pods,result=handed_on}": 34_567,
		"gpu_summary_watch_decoded_objects_total{resource=pods}":          40_000,
		"gpu_summary_watch_bytes_total{resource=pods,result=handed_on}":   1 << 30,
		"gpu_summary_watch_bytes_total{resource=pods,result=dropped}":     5 << 30,
		"gpu_summary_watch_position{resource=pods}":                       4799,
		"gpu_summary_pass_requests_total{}":                               5000,
		"gpu_summary_queue_oldest_timestamp_seconds{}":                    float64(ago(time.Minute).Unix()),
		"gpu_summary_lease_term{}":                                        7,
		"gpu_summary_lease_renewed_timestamp_seconds{}":                   float64(ago(2 * time.Second).Unix()),
	} {
		if value, ok := got[series]; !ok || value != want {
			t.Errorf("%s is %v (there: %v), want %v", series, value, ok, want)
		}
	}
	for series := range got {
		if strings.Contains(series, "watch_bytes_total{resource=configmaps") || strings.Contains(series, "watch_position{resource=nodes") {
			t.Errorf("%s is there, and is not known", series)
		}
	}
}

// TestJSON has the same, and what is said of it.
func TestJSON(t *testing.T) {
	n := healthy()
	n.Reflector[0].LastByte = ago(time.Hour)
	response := get(n, "/api/v1/pipeline")
	text := response.Body.Bytes()
	if is := response.Header().Get("Content-Type"); response.Code != http.StatusOK || is != "application/json" {
		t.Fatalf("%d, %s", response.Code, is)
	}
	var got struct {
		SchemaVersion string
		Components    []pipeline.Verdict
		pipeline.Numbers
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.SchemaVersion != "1" || len(got.Components) != 6 || got.Components[0].State != pipeline.Trouble || got.Components[1].State != pipeline.OK ||
		got.Reflector[0].Bookmarks != 60 || got.Workqueue.Asked != 5000 || !got.At.Equal(now) {
		t.Errorf("%s", text)
	}
	if response := get(n, "/api/v1/pipeline?x=1"); response.Code != http.StatusBadRequest || !strings.Contains(response.Body.String(), "x") {
		t.Errorf("a parameter that does not exist: %d, %s", response.Code, response.Body)
	}
}
