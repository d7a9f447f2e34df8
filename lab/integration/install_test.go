package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/lab/install"
)

// TestInstalling does what docs/install.md says, with helm and kubectl as they are.
func TestInstalling(t *testing.T) {
	tools, err := install.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("helm template, kubectl apply, dry run", func(t *testing.T) { testDryRun(t, tools) })
	t.Run("kubectl apply -k", func(t *testing.T) { testKustomization(t, tools) })
	t.Run("in the cluster", func(t *testing.T) { testInCluster(t, tools) })
}

// site is a restricted namespace to install into.
type site struct {
	*env
	tools install.Tools
}

// newSite makes a namespace that admits nothing that is not restricted, and has a
// warning sent for what would create such a thing later.
func newSite(e *env, tools install.Tools, name string) site {
	e.Helper()
	const level = "{pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: restricted}"
	s := site{&env{T: e.T, plane: e.plane, client: e.client, namespace: name}, tools}
	_, err := s.kubectl("{apiVersion: v1, kind: Namespace, metadata: {name: "+name+", labels: "+level+"}}", "apply", "-f", "-")
	e.must(err)
	e.Cleanup(func() {
		if out, err := s.kubectl("", "delete", "namespace", name, "--timeout=90s"); err != nil {
			e.Errorf("clean up: %v\n%s", err, out)
		}
	})
	return s
}

// kubectl runs kubectl as the administrator. A warning is an error: nobody reads
// them.
func (s site) kubectl(stdin string, args ...string) (string, error) {
	// Not with the test's context, which has ended when it is cleaned up.
	cmd := exec.Command(s.tools.Kubectl, append(args, "--kubeconfig", s.plane.Kubeconfig())...)
	cmd.Env = []string{"HOME=" + filepath.Dir(s.tools.Kubectl)} // where its cache is
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err == nil && stderr.Len() > 0 {
		err = fmt.Errorf("kubectl %s", args[0])
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return stdout.String(), err
}

// render returns the chart for this namespace.
func (s site) render(values string) string {
	s.Helper()
	manifest, err := s.tools.Render(s.Context(), s.namespace, values)
	s.must(err)
	return manifest
}

// dryRun lets the API server judge manifests as if they were created, down to
// admission, and returns how many objects it accepted.
func (s site) dryRun(manifest string, args ...string) int {
	s.Helper()
	out, err := s.kubectl(manifest, append([]string{"apply", "--dry-run=server"}, args...)...)
	if err != nil {
		s.Errorf("%v\n%s", err, out)
	}
	accepted := 0
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(strings.TrimSpace(line), "(server dry run)") {
			s.Errorf("kubectl says %q", line)
		}
		accepted++
	}
	return accepted
}

// testDryRun: the server accepts every object of the chart without a warning,
// whatever is turned on.
func testDryRun(t *testing.T, tools install.Tools) {
	e := newEnv(t)
	s := newSite(e, tools, e.namespace+"-install")
	everything, err := os.ReadFile(filepath.Join(tools.Chart(), "ci", "everything-values.yaml"))
	e.must(err)
	defineServiceMonitors(s)
	for name, tc := range map[string]struct {
		values  string
		objects int
	}{
		"defaults":   {"", 15},
		"everything": {strings.Replace(string(everything), "namespace: team", "namespace: "+e.namespace, 1), 19},
		"little": {"replicaCount: 1\nleaderElection: {enabled: false}\nnetworkPolicy: {enabled: false}\n" +
			"podDisruptionBudget: {enabled: false}\nserviceAccount: {create: false, name: default}\nrbac: {create: false}\n" +
			"topologySpreadConstraints: []\nnodeSelector: null\nresources: null\n", 2},
	} {
		if accepted := s.dryRun(s.render(tc.values), "-f", "-"); accepted != tc.objects {
			t.Errorf("%s: %d objects accepted, want %d", name, accepted, tc.objects)
		}
	}
}

// testKustomization: what is in the repository is accepted too. The namespace has to
// be there: what is created in a dry run is not there for what comes after it.
func testKustomization(t *testing.T, tools install.Tools) {
	e := newEnv(t)
	s := newSite(e, tools, "gpu-summary")
	if accepted := s.dryRun("", "-k", tools.Manifests()); accepted != 16 {
		t.Errorf("%d objects accepted, want 16", accepted)
	}
}

// defineServiceMonitors gives the cluster the resource of the Prometheus operator,
// or as much of it as its documentation says about the fields of the chart. A field
// that is not among them is refused.
func defineServiceMonitors(s site) {
	s.Helper()
	const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: ServiceMonitor, plural: servicemonitors, singular: servicemonitor}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [selector, endpoints]
            properties:
              selector:
                type: object
                properties: {matchLabels: {type: object, additionalProperties: {type: string}}}
              endpoints:
                type: array
                items:
                  type: object
                  properties:
                    port: {type: string}
                    scheme: {type: string, enum: [http, https, HTTP, HTTPS]}
                    interval: {type: string, pattern: "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"}
                    bearerTokenFile: {type: string}
                    tlsConfig:
                      type: object
                      properties:
                        insecureSkipVerify: {type: boolean}
                        serverName: {type: string}
                        caFile: {type: string}
`
	_, err := s.kubectl(definition, "apply", "-f", "-")
	s.must(err)
	s.Cleanup(func() {
		if _, err := s.kubectl(definition, "delete", "-f", "-"); err != nil {
			s.Errorf("clean up: %v", err)
		}
	})
	_, err = s.kubectl("", "wait", "--for=condition=Established", "--timeout=90s", "customresourcedefinition/servicemonitors.monitoring.coreos.com")
	s.must(err)
}
