package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// otherSite prepares another installation in a namespace of its own, which is gone after
// the test with all that was installed.
func (e *env) otherSite(name string) site {
	e.Helper()
	s := site{namespace: name, publish: name, chart: e.site.chart}
	e.must(s.makeNamespace(e.Context()))
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.uninstall(ctx); err != nil && !strings.Contains(err.Error(), "not found") {
			e.Errorf("clean up: %v", err)
		}
		namespaces := lab.client.CoreV1().Namespaces()
		e.must(namespaces.Delete(ctx, s.namespace, metav1.DeleteOptions{}))
		e.eventuallyIn(ctx, "namespace "+s.namespace+" to be gone", func() error {
			_, err := namespaces.Get(ctx, s.namespace, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(errors.New("it is there"), err)
		})
	})
	return s
}

// changed is the site with a copy of the chart in which a text is another.
func (s site) changed(e *env, file, old, now string) site {
	e.Helper()
	dir := filepath.Join(e.TempDir(), "chart")
	e.must(os.CopyFS(dir, os.DirFS(s.chart)))
	path := filepath.Join(dir, file)
	text, err := os.ReadFile(path)
	e.must(err)
	if !strings.Contains(string(text), old) {
		e.Fatalf("the chart's %s has no %q", file, old)
	}
	e.must(os.WriteFile(path, []byte(strings.Replace(string(text), old, now, 1)), 0o600))
	s.chart = dir
	return s
}

// TestTheChartIsWhatItSays: two replicas, restricted as far as Pod Security goes, with a
// file system that nothing can be written to.
func TestTheChartIsWhatItSays(t *testing.T) {
	e := newEnv(t)
	ns, err := e.client.CoreV1().Namespaces().Get(t.Context(), e.site.namespace, metav1.GetOptions{})
	e.must(err)
	if level := ns.Labels["pod-security.kubernetes.io/enforce"]; level != "restricted" {
		t.Errorf("Pod Security of the namespace is %q", level)
	}
	pods := e.site.pods(t.Context())
	if len(pods) != 2 {
		t.Errorf("%d replicas, want 2", len(pods))
	}
	for _, p := range pods {
		c := p.Spec.Containers[0]
		if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s can write to its root", p.Name)
		}
		if n := p.Status.ContainerStatuses[0].RestartCount; n != 0 {
			t.Errorf("%s was restarted %d times", p.Name, n)
		}
		// The image has no shell, but the controller can ask what it may.
		args := append([]string{"exec", p.Name, "--namespace", p.Namespace, "--", "/gpu-summary-controller", "preflight"}, c.Args...)
		if out, err := kubectl(t.Context(), args...); err != nil {
			t.Errorf("preflight in %s: %v\n%s", p.Name, err, out)
		}
	}
}

// TestHelmUninstall leaves what docs/install.md says: what was published, and what
// clients of the API server leave behind by themselves.
func TestHelmUninstall(t *testing.T) {
	e := newEnv(t)
	s := e.otherSite("removed")
	before := e.everything(s.namespace)
	_, err := s.helm(t.Context(), "install", s.values(""))
	e.must(err)
	e.eventually("the release", func() error { return s.working(t.Context(), 2) })
	if n := len(e.everything(s.namespace)) - len(before); n < 15 {
		t.Errorf("%d objects were installed, want at least 15", n)
	}
	e.must(s.uninstall(t.Context()))
	want := []string{
		"configmaps removed/gpu-capacity", "configmaps removed/removed", // what was published
		"leases.coordination.k8s.io removed/removed-controller", // terms go on from it
	}
	e.eventually("nothing else to be left", func() error {
		var left []string
		for object := range e.everything(s.namespace) {
			if !before[object] {
				left = append(left, object)
			}
		}
		slices.Sort(left)
		if !slices.Equal(left, want) {
			return fmt.Errorf("left are %q", left)
		}
		return nil
	})
	if left := e.partsOf(s); len(left) > 0 { // in other namespaces
		t.Errorf("left are %v", left)
	}
}

// everything is all objects of a namespace and all that are in none, but for Events and
// what changes by itself.
func (e *env) everything(namespace string) map[string]bool {
	e.Helper()
	found := map[string]bool{}
	e.visit(namespace, "", func(_, resource string, o *metav1.PartialObjectMetadata) {
		found[strings.TrimSuffix(resource+" "+o.Namespace+"/"+o.Name, "/")] = true
	})
	return found
}

func (e *env) visit(namespace, selector string, visit func(kind, resource string, o *metav1.PartialObjectMetadata)) {
	e.Helper()
	lists, err := e.client.Discovery().ServerPreferredResources()
	e.must(err)
	config := rest.CopyConfig(lab.plane.Config())
	config.WarningHandler = rest.NoWarnings{} // of what is deprecated, and listed here like all else
	client, err := metadata.NewForConfig(config)
	e.must(err)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		e.must(err)
		for _, r := range list.APIResources {
			resource := gv.WithResource(r.Name)
			if !slices.Contains(r.Verbs, "list") || r.Name == "events" || r.Name == "componentstatuses" {
				continue
			}
			from := client.Resource(resource).Namespace("")
			if r.Namespaced {
				from = client.Resource(resource).Namespace(namespace)
			}
			objects, err := from.List(e.Context(), metav1.ListOptions{LabelSelector: selector})
			if err != nil {
				e.Fatalf("list %s: %v", resource, err)
			}
			for i := range objects.Items {
				visit(r.Kind, resource.GroupResource().String(), &objects.Items[i])
			}
		}
	}
}

// TestWrongChart: what TestTheChartIsWhatItSays and all others begin with, that the
// replicas are at work, fails for a chart with a mistake, and says what it is.
func TestWrongChart(t *testing.T) {
	for _, tc := range []struct {
		name, file, old, now string
		says                 []string
	}{
		{
			"permission", "templates/rbac.yaml", "resources: [pods]\n  verbs: [list, watch]", "resources: [pods]\n  verbs: [list]",
			[]string{"pods", "watch"},
		},
		{
			"user", "templates/deployment.yaml", "runAsUser: 65532", "runAsUser: 0",
			[]string{"violates PodSecurity", "runAsUser=0"},
		},
		{
			// Where the pod does not say who it runs as, the image does. This one says root.
			"image-user", "templates/deployment.yaml", "runAsUser: 65532\n        runAsGroup: 65532", "# of the image",
			[]string{"container has runAsNonRoot and image will run as root"},
		},
		{
			"probe", "templates/deployment.yaml", "path: /readyz", "path: /ready",
			[]string{"Readiness probe failed", "statuscode: 401"},
		},
		{
			"liveness", "templates/deployment.yaml", "path: /livez", "path: /live",
			[]string{"Liveness probe failed"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := newEnv(t)
			s := e.otherSite("wrong-"+tc.name).changed(e, tc.file, tc.old, tc.now)
			values := strings.Replace(s.values("replicaCount: 1\n"), "extraArgs: [", "extraArgs: [--cache-sync-timeout=5s, ", 1)
			if tc.name == "image-user" {
				values = strings.Replace(values, repository+", tag: "+tag, strings.Replace(program, ":", ", tag: ", 1), 1)
			}
			_, err := s.helm(t.Context(), "install", values)
			e.must(err)
			e.eventually(fmt.Sprintf("%q", tc.says), func() error {
				err := s.working(t.Context(), 1)
				if err == nil {
					return errors.New("it works")
				}
				for _, words := range tc.says {
					if !strings.Contains(err.Error(), words) {
						return fmt.Errorf("what keeps it from working is: %w", err)
					}
				}
				return nil
			})
		})
	}
}
