package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/gather"
	"github.com/gpu-summary/gpu-summary-controller/internal/plugin"
	"github.com/gpu-summary/gpu-summary-controller/lab/load"
)

// faces compares everything that shows a row for each node, number by number: the
// kubectl plugin on the cluster and on a dump of it, the JSON API, the metrics, the
// published gpu-capacity, and a recount of the record that shares no code with them.
func (e *env) faces(c *controller, cluster *load.Cluster, want load.Totals) {
	e.Helper()
	published, err := gather.Published(e.Context(), e.client.CoreV1(), e.namespace, "gpu-capacity")
	e.must(err)
	rows := published.Rows
	if len(rows) != len(want.PerNode) {
		e.Errorf("gpu-capacity has %d rows, want %d", len(rows), len(want.PerNode))
	}
	devices := map[string]load.Node{}
	for _, node := range cluster.Nodes {
		devices[node.Name] = node
	}
	for _, row := range rows {
		node, requested := devices[row.Node], want.PerNode[row.Node]
		recount := count.Row{
			Node: row.Node, Resource: count.NVIDIA, Source: count.DevicePlugin, Model: node.Model,
			Numbers: count.Numbers{
				Capacity: node.GPUs, Allocatable: node.GPUs, Requested: requested, Free: node.GPUs - requested, UsableFree: node.GPUs - requested,
			},
		}
		if diff := cmp.Diff(recount, row); diff != "" {
			e.Errorf("gpu-capacity differs from the recount (-recount +published):\n%s", diff)
		}
	}
	for face, got := range map[string][]count.Row{
		"kubectl gpu-summary nodes":                  e.kubectlPlugin("--kubeconfig", e.kubeconfig(e.plane.Config())),
		"kubectl gpu-summary nodes --from":           e.kubectlPlugin("--from", e.dump()),
		"kubectl gpu-summary nodes --from-configmap": e.kubectlPlugin("--kubeconfig", e.kubeconfig(e.plane.Config()), "--from-configmap", "-n", e.namespace),
		"/api/v1/nodes":                              e.rowsOf(c.get("/api/v1/nodes")),
		"/metrics":                                   c.rowsOfMetrics(),
	} {
		if diff := cmp.Diff(rows, got, cmpopts.EquateEmpty()); diff != "" {
			e.Errorf("%s differs from gpu-capacity (-published +shown):\n%s", face, diff)
		}
	}
}

// kubectlPlugin runs the kubectl plugin's "nodes -o json".
func (e *env) kubectlPlugin(args ...string) []count.Row {
	e.Helper()
	var stdout, stderr bytes.Buffer
	command := plugin.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	command.SetArgs(append([]string{"nodes", "-o", "json"}, args...))
	if err := command.ExecuteContext(e.Context()); err != nil {
		e.Fatalf("kubectl gpu-summary nodes %v: %v\n%s", args, err, stderr.String())
	}
	return e.rowsOf(stdout.Bytes())
}

func (e *env) rowsOf(document []byte) []count.Row {
	e.Helper()
	var read struct {
		Rows []count.Row `json:"rows"`
	}
	e.must(json.Unmarshal(document, &read))
	return read.Rows
}

// dump writes what "kubectl get pods,nodes,… -A -o json" prints, and returns the file.
func (e *env) dump() string {
	e.Helper()
	ctx := e.Context()
	pods, err := e.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	e.must(err)
	nodes, err := e.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	e.must(err)
	list := struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Items      []runtime.Object `json:"items"`
	}{APIVersion: "v1", Kind: "List"}
	for i := range pods.Items {
		list.Items = append(list.Items, &pods.Items[i])
	}
	for i := range nodes.Items {
		list.Items = append(list.Items, &nodes.Items[i])
	}
	for _, object := range list.Items {
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		e.must(err)
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	text, err := json.Marshal(list)
	e.must(err)
	path := filepath.Join(e.TempDir(), "dump.json")
	e.must(os.WriteFile(path, text, 0o600))
	return path
}

// get reads what the controller serves at a path.
func (c *controller) get(path string) []byte {
	c.env.Helper()
	request, err := http.NewRequestWithContext(c.env.Context(), http.MethodGet, c.url+path, nil)
	c.env.must(err)
	response, err := http.DefaultClient.Do(request)
	c.env.must(err)
	defer response.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	c.env.must(err)
	if response.StatusCode != http.StatusOK {
		c.env.Fatalf("GET %s: %s: %s", path, response.Status, body.String())
	}
	return body.Bytes()
}

// rowsOfMetrics puts the series of each node together again.
func (c *controller) rowsOfMetrics() []count.Row {
	c.env.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(c.get("/metrics")))
	c.env.must(err)
	rows := map[string]*count.Row{}
	for name, number := range map[string]func(*count.Row) *int64{
		"capacity":      func(r *count.Row) *int64 { return &r.Capacity },
		"allocatable":   func(r *count.Row) *int64 { return &r.Allocatable },
		"requested":     func(r *count.Row) *int64 { return &r.Requested },
		"free":          func(r *count.Row) *int64 { return &r.Free },
		"usable_free":   func(r *count.Row) *int64 { return &r.UsableFree },
		"overcommitted": func(r *count.Row) *int64 { return &r.Overcommitted },
	} {
		for _, series := range families["gpu_summary_node_"+name+"_devices"].GetMetric() {
			labels := map[string]string{}
			for _, label := range series.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			key := fmt.Sprint(labels)
			if rows[key] == nil {
				rows[key] = &count.Row{Node: labels["node"], Resource: labels["resource"], Source: count.Source(labels["source"]), Model: labels["model"]}
			}
			*number(rows[key]) = int64(series.GetGauge().GetValue())
		}
	}
	var list []count.Row
	for _, row := range rows {
		list = append(list, *row)
	}
	slices.SortFunc(list, func(a, b count.Row) int { return strings.Compare(a.Node, b.Node) })
	return list
}
