package plugin

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/gather"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// collect keeps the pods and nodes of a dump as they are.
type collect struct {
	gather.Visitor
	objects []runtime.Object
}

func (c *collect) Pod(pod *corev1.Pod)    { c.objects = append(c.objects, pod) }
func (c *collect) Node(node *corev1.Node) { c.objects = append(c.objects, node) }

// clusterOf is one with the pods and nodes of the dump, and those alone.
func clusterOf(t *testing.T) *fake.Clientset {
	t.Helper()
	c, _, _ := stand{}.common()
	c.from = world
	all := &collect{Visitor: newFacts(count.Names{})}
	if _, err := c.gather(t.Context(), gather.Scope{Nodes: true}, all); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientset(all.objects...)
}

// forbid refuses to list a resource; only in all namespaces at once, if everywhere is
// not set.
func forbid(cluster *fake.Clientset, resource string, everywhere bool) {
	cluster.PrependReactor("list", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !everywhere && action.GetNamespace() != "" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
	})
}

// TestClusterIsReadAsADump is: what DRA has no part in is the same.
func TestClusterIsReadAsADump(t *testing.T) {
	for _, args := range [][]string{
		{"nodes", "-l", "pool=training"}, {"pods", "-n", "training"}, {"pods", "-n", "web", "-l", "pod-template-hash"},
		{"pending", "-n", "training"}, {"describe", "node-a"},
	} {
		got := stand{cluster: clusterOf(t)}.run(t, args...)
		if want := (stand{}).run(t, append(args, "--from", world)...); got != want || got.out == "" {
			t.Errorf("%q: status %d, the cluster has\n%s%s\nthe dump\n%s", args, got.status, got.out, got.err, want.out)
		}
	}
	all := stand{cluster: clusterOf(t)}.run(t, "pods")
	if got := (stand{cluster: clusterOf(t)}).run(t, "pods", "-n", "web", "-A"); got != all || !strings.Contains(got.out, "training") {
		t.Errorf("with -A:\n%s%s", got.out, got.err)
	}
}

// TestNarrow: of a dump no more is told than an API server would list.
func TestNarrow(t *testing.T) {
	pod := func(namespace, app string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{"app": app}}, Status: corev1.PodStatus{Phase: phase}}
	}
	for name, tc := range map[string]struct {
		scope       gather.Scope
		pods, nodes int
	}{
		"all":       {gather.Scope{Nodes: true, FinishedPods: true}, 5, 1},
		"active":    {gather.Scope{Nodes: true}, 3, 1},
		"namespace": {gather.Scope{Namespace: "a"}, 2, 0},
		"label":     {gather.Scope{PodSelector: labels.SelectorFromSet(labels.Set{"app": "x"})}, 2, 0},
		"node":      {gather.Scope{Nodes: true, NodeSelector: labels.SelectorFromSet(labels.Set{"pool": "x"})}, 3, 0},
	} {
		told := &collect{}
		n := narrow{tc.scope, told}
		n.Pod(pod("a", "x", corev1.PodRunning))
		n.Pod(pod("a", "y", corev1.PodPending))
		n.Pod(pod("b", "x", ""))
		n.Pod(pod("a", "x", corev1.PodSucceeded))
		n.Pod(pod("a", "x", corev1.PodFailed))
		n.Node(&corev1.Node{})
		if got := len(told.objects); got != tc.pods+tc.nodes {
			t.Errorf("%s: told of %d objects, want %d pods and %d nodes", name, got, tc.pods, tc.nodes)
		}
	}
}

// TestWhichCluster: without any the message says what to do; with one it is asked for
// protobuf.
func TestWhichCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	c := newCommon(genericiooptions.NewTestIOStreamsDiscard())
	if _, err := c.client(); err == nil || !strings.Contains(err.Error(), "--from reads a dump") {
		t.Errorf("no cluster: %v", err)
	}
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.Header.Get("Accept") + " " + r.UserAgent()
		http.Error(w, "not today", http.StatusTeapot)
	}))
	defer server.Close()
	var errOut bytes.Buffer
	command := New(genericiooptions.IOStreams{Out: io.Discard, ErrOut: &errOut})
	command.SetArgs([]string{"-s", server.URL})
	if err := command.ExecuteContext(t.Context()); err == nil {
		t.Error("an API server that is none is believed")
	}
	if got, want := <-asked, "/api/v1/pods application/vnd.kubernetes.protobuf,application/json kubectl-gpu_summary/"; !strings.HasPrefix(got, want) {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

// TestNotes: what is broken and what is not looked at is told, with its place.
func TestNotes(t *testing.T) {
	got := stand{in: `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
- {apiVersion: v1, kind: Pod, metadata: {name: p, labels: 5}}
- {apiVersion: v1, kind: Node, metadata: {name: node-n}, status: {capacity: {nvidia.com/gpu: 2}, allocatable: {nvidia.com/gpu: 2}}}
`}.run(t, "nodes", "--from", "-")
	for _, want := range []string{"note: left out: standard input: ", "item 2", "labels", "note: not looked at: 1 ConfigMap"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("no %q in\n%s", want, got.err)
		}
	}
	if got.status != 0 || !strings.Contains(got.out, "node-n          unknown") {
		t.Errorf("status %d, and the others are\n%s", got.status, got.out)
	}
}

// TestMissingPermissions: nobody is shown a number that is wrong, and everybody what
// they may see.
func TestMissingPermissions(t *testing.T) {
	for name, tc := range map[string]struct {
		resource   string
		everywhere bool
		args       []string
		status     int
		said       []string
	}{
		"pods of all":           {"pods", false, []string{"nodes"}, 1, []string{"list pods in all namespaces", "--from-configmap"}},
		"-n does not help":      {"pods", false, []string{"nodes", "-n", "training"}, 1, []string{"list pods in all namespaces"}},
		"pods of one namespace": {"pods", false, []string{"pods", "-n", "training"}, 0, nil},
		"pending of one":        {"pods", false, []string{"pending", "-n", "training"}, 0, nil},
		"no pods":               {"pods", true, []string{"pods", "-n", "training"}, 1, []string{"list pods in namespace training"}},
		"nodes":                 {"nodes", true, []string{"nodes"}, 1, []string{"list nodes", "--from-configmap"}},
		"nodes, of models":      {"nodes", true, []string{"models"}, 1, []string{"list nodes"}},
		"nodes, of pods":        {"nodes", true, []string{"pods"}, 0, []string{"you may not list nodes, and"}},
		"nodes, of pending":     {"nodes", true, []string{"pending"}, 0, []string{"you may not list nodes, and"}},
		"nodes, of namespaces":  {"nodes", true, []string{"namespaces"}, 0, []string{"you may not list nodes, and"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clusterOf(t)
			forbid(cluster, tc.resource, tc.everywhere)
			got := stand{cluster: cluster}.run(t, tc.args...)
			if got.status != tc.status || (got.status == 0) != (got.out != "") {
				t.Errorf("status %d, want %d:\n%s%s", got.status, tc.status, got.out, got.err)
			}
			for _, want := range tc.said {
				if !strings.Contains(got.err, want) {
					t.Errorf("it does not say %q:\n%s", want, got.err)
				}
			}
		})
	}
}

// TestScope: what is asked of the API server is what is needed.
func TestScope(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nodes":   {[]string{"nodes", "-n", "web", "-l", "pool=x"}, "pods in : nodes in :"},
		"pods":    {[]string{"pods", "-n", "web", "-l", "app=x"}, "pods in web:app=x nodes in :"},
		"pending": {[]string{"pending", "-l", "app"}, "pods in :app nodes in :"},
		"claims":  {[]string{"claims", "-n", "web"}, "pods in web:"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clusterOf(t)
			stand{cluster: cluster}.run(t, tc.args...)
			var lists []string
			for _, action := range cluster.Actions() {
				if list, ok := action.(clienttesting.ListAction); ok {
					lists = append(lists, list.GetResource().Resource+" in "+list.GetNamespace()+":"+list.GetListRestrictions().Labels.String())
				}
			}
			if got := strings.Join(lists, " "); got != tc.want {
				t.Errorf("it lists %s, want %s", got, tc.want)
			}
		})
	}
}

// published is a cluster of which no more may be read than what the controller
// publishes.
func published(t *testing.T, snapshot *count.Snapshot) *fake.Clientset {
	t.Helper()
	marshal := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	cluster := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "gpu-capacity", Annotations: map[string]string{publish.AnnotationBase: "gpu-capacity", publish.AnnotationObserved: "pods@1 nodes@2"}},
		Data: map[string]string{
			publish.KeySummary: marshal(struct {
				SchemaVersion string `json:"schemaVersion"`
				*count.Snapshot
			}{publish.SchemaVersion, snapshot}),
			publish.KeyNodes: marshal(rowsDocument[count.Row]{publish.SchemaVersion, snapshot.Rows}),
		},
	})
	forbid(cluster, "pods", true)
	forbid(cluster, "nodes", true)
	return cluster
}

// TestFromConfigMap: what was published is shown as what is counted is.
func TestFromConfigMap(t *testing.T) {
	snapshot := snapshotOf(t, world)
	for _, subcommand := range []string{"nodes", "namespaces", "models"} {
		for _, f := range []string{"", "json", "csv"} {
			args := []string{subcommand}
			if f != "" {
				args = append(args, "-o", f)
			}
			got := stand{cluster: published(t, snapshot)}.run(t, append(args, "--from-configmap", "-n", "monitoring")...)
			if want := (stand{}).run(t, append(args, "--from", world)...); got != want {
				t.Errorf("%q: status %d, published:\n%s%s\ncounted:\n%s", args, got.status, got.out, got.err, want.out)
			}
		}
	}
	for _, tc := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"pending"}, 0, "3 pods wait for 13: 8 unschedulable, 1 untried, 4 gated (pods × GPUs each: 1 × 1, 1 × 4, 1 × 8)"},
		{[]string{"describe", "node-d"}, 0, "State:  SchedulingDisabled,Tainted"},
		{[]string{"describe", "node-z"}, 1, "nodes with GPUs are: node-a"},
		{[]string{"nodes", "-l", "pool=test"}, 1, "leave out --from-configmap"},
		{[]string{"pending", "-l", "pool=test"}, 1, "leave out --from-configmap"},
		{[]string{"pods"}, 1, "leave out --from-configmap"},
		{[]string{"claims"}, 1, "leave out --from-configmap"},
		{[]string{"nodes", "-n", "elsewhere"}, 1, "elsewhere"},
		{[]string{"nodes", "--from-configmap=other"}, 1, "other"},
	} {
		got := stand{cluster: published(t, snapshot)}.run(t, append([]string{"--from-configmap", "-n", "monitoring"}, tc.args...)...)
		if got.status != tc.status || !strings.Contains(got.out+got.err, tc.want) {
			t.Errorf("%q: status %d, without %q:\n%s%s", tc.args, got.status, tc.want, got.out, got.err)
		}
	}
}
