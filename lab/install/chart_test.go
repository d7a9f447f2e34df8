package install_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	logsapi "k8s.io/component-base/logs/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// everything returns values that turn on all there is.
func everything(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tools.Chart(), "ci", "everything-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHelmFindsNoFault(t *testing.T) {
	if err := tools.Lint(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWhatCannotWorkIsRefused before anything is installed.
func TestWhatCannotWorkIsRefused(t *testing.T) {
	for _, values := range []string{
		"replicas: 3",
		"replicaCount: two",
		"replicaCount: -1",
		"image: {tags: v1}",
		"image: {repository: \"\"}",
		"image: {digest: 0123}",
		"count: {gpuResources: [gpu]}",
		"count: {draClasses: {gpu.example.com: gpu}}",
		"publish: {name: \"\"}",
		"publish: {name: GPU}",
		"publish: {settle: 5}",
		"publish: {settle: 5 seconds}",
		"http: {auth: basic, tlsSecret: tls}",
		"http: {port: 80}",
		"networkPolicy: {apiServerCIDRs: [10.0.0.1]}",
		"priorityClass: {value: 2000000000}",
		"extraArgs: [v=2]",
		// Two that write at once would undo each other's work.
		"leaderElection: {enabled: false}",
		"http: {auth: \"\"}",
	} {
		if text, err := tools.Render(t.Context(), "gpu-summary", values); err == nil {
			t.Errorf("%s was accepted:\n%s", values, text)
		} else if !strings.Contains(err.Error(), "values don't meet the specifications of the schema") {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// deployment is the one of the chart.
func deployment(t *testing.T, values string) (d appsv1.Deployment) {
	t.Helper()
	for _, object := range objects(t, render(t, values)) {
		if object.GetKind() == "Deployment" {
			convert(t, object.Object, &d)
		}
	}
	return d
}

// TestEachValueArrives at the controller, as a flag that it has.
func TestEachValueArrives(t *testing.T) {
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	run.DefaultOptions().AddFlags(flags)
	logsapi.AddFlags(logsapi.NewLoggingConfiguration(), flags)
	want := []string{
		"--http-address=:9443", "--http-auth=kubernetes", "--http-auth-audience=gpu-summary", "--watch-namespace=team", "--pod-selector=a in (b, c)",
		"--gpu-resource=example.com/gpu", "--gpu-resource=example.org/gpu-*", "--dra-class=gpu.example.com=example.com/gpu",
		"--name=other", "--resource=amd.com/gpu", "--capacity-name=", "--settle=5s",
		"--leader-elect-lease-duration=30s", "--leader-elect-renew-deadline=20s", "--leader-elect-retry-period=4s",
		"--tls-cert-file=/etc/gpu-summary-controller/tls/tls.crt",
		"--tls-private-key-file=/etc/gpu-summary-controller/tls/tls.key", "--metrics-per-node=false", "--profiling", "-v=2", "--kube-api-qps=100",
	}
	all := deployment(t, everything(t)).Spec.Template.Spec.Containers[0].Args
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("flags with everything on (-want +got):\n%s", diff)
	}
	off := "replicaCount: 1\ncount: {nodes: false}\nleaderElection: {enabled: false}\npublish: {events: false}\nhttp: {auth: none}\n"
	want = []string{"--http-address=:8443", "--http-auth=none", "--watch-nodes=false", "--events=false", "--leader-elect=false"}
	if diff := cmp.Diff(want, deployment(t, off).Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Errorf("flags with what is on turned off (-want +got):\n%s", diff)
	}
	for _, arg := range append(all, want...) {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if flags.Lookup(name) == nil && flags.ShorthandLookup(name[:1]) == nil {
			t.Errorf("the controller has no flag %s", arg)
		}
	}
}

// TestProbesSpeakWhatIsServed: HTTPS wherever tokens are asked for.
func TestProbesSpeakWhatIsServed(t *testing.T) {
	for values, want := range map[string]corev1.URIScheme{
		"":                                   corev1.URISchemeHTTPS,
		"http: {auth: none}":                 corev1.URISchemeHTTP,
		"http: {auth: none, tlsSecret: tls}": corev1.URISchemeHTTPS,
	} {
		container := deployment(t, values).Spec.Template.Spec.Containers[0]
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
			if got := probe.HTTPGet.Scheme; got != want {
				t.Errorf("%q: %s is asked for over %s, want %s", values, probe.HTTPGet.Path, got, want)
			}
		}
	}
}

// TestTheMemoryLimitIsPassedOn to the collector, with a tenth to spare.
func TestTheMemoryLimitIsPassedOn(t *testing.T) {
	for values, want := range map[string]string{
		"":                                   "230MiB",
		"resources: {limits: {memory: 1Gi}}": "921MiB",
		// Not worth a parser for quantities: no limit is better than a wrong one.
		"resources: {limits: {memory: 300M}}": "",
		"resources: {limits: {memory: null}}": "",
	} {
		got := ""
		for _, env := range deployment(t, values).Spec.Template.Spec.Containers[0].Env {
			if env.Name == "GOMEMLIMIT" {
				got = env.Value
			}
		}
		if got != want {
			t.Errorf("%q: GOMEMLIMIT is %q, want %q", values, got, want)
		}
	}
}

// TestEveryValueIsDescribed: by the schema, which refuses all others, and in
// docs/install.md.
func TestEveryValueIsDescribed(t *testing.T) {
	var values map[string]any
	read(t, filepath.Join(tools.Chart(), "values.yaml"), &values)
	var schema node
	read(t, filepath.Join(tools.Chart(), "values.schema.json"), &schema)
	delete(schema.Properties, "global") // is helm's own
	document, err := os.ReadFile(filepath.Join(tools.Root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	described := leaves("", schema)
	if diff := cmp.Diff(paths("", values, described), slices.Sorted(maps.Keys(described))); diff != "" {
		t.Errorf("values (-values.yaml +values.schema.json):\n%s", diff)
	}
	for path, description := range described {
		if description == "" {
			t.Errorf("%s has no description", path)
		}
		if !strings.Contains(string(document), "| `"+path+"` |") {
			t.Errorf("docs/install.md has no line for %s", path)
		}
	}
}

// node is the part of a schema that describes values.
type node struct {
	Description string
	Properties  map[string]node
}

// leaves are the paths of all that can be set, and what they mean.
func leaves(path string, n node) map[string]string {
	if len(n.Properties) == 0 || path == "resources" {
		return map[string]string{path: n.Description}
	}
	found := map[string]string{}
	for name, child := range n.Properties {
		maps.Copy(found, leaves(strings.TrimPrefix(path+"."+name, "."), child))
	}
	return found
}

// paths are the paths of the values, down to those that the schema knows as one.
func paths(path string, value any, known map[string]string) (found []string) {
	inner, ok := value.(map[string]any)
	if _, leaf := known[path]; leaf || !ok {
		return []string{path}
	}
	for name, child := range inner {
		found = append(found, paths(strings.TrimPrefix(path+"."+name, "."), child, known)...)
	}
	slices.Sort(found)
	return found
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}
