package preflight

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/gpu-summary/gpu-summary-controller/deploy/manifests"
)

// shipped is what the manifests are for: the controller with its default flags.
var shipped = Options{Namespace: "gpu-summary", Nodes: true, DRA: true, Lease: "gpu-summary-controller", Events: true}

// everything is all there is to need.
var everything = Options{
	Namespace: "gpu-summary", Nodes: true, DRA: true, Lease: "gpu-summary-controller", Events: true, Authentication: true,
}

// TestTheManifestsGrantTheNeedsAndNothingElse: what the controller needs is granted,
// and what is granted is needed. The least that works is both.
func TestTheManifestsGrantTheNeedsAndNothingElse(t *testing.T) {
	file, err := manifests.FS.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{}
	for _, n := range shipped.Needs() {
		for _, verb := range n.Verbs {
			permission := key(n.Namespace, n.Group, n.Resource, n.Name, verb)
			if needed[permission] {
				t.Errorf("needed twice: %s", permission)
			}
			needed[permission] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(needed)), granted(t, file)); diff != "" {
		t.Errorf("permissions (-needed +granted by the manifests):\n%s", diff)
	}
}

func key(namespace, group, resource, name, verb string) string {
	return fmt.Sprintf("%s %s.%s named %q in namespace %q", verb, resource, group, name, namespace)
}

// granted lists every permission in the roles of a manifest.
func granted(t *testing.T, manifest []byte) []string {
	t.Helper()
	seen := map[string]bool{}
	for _, object := range decode(t, manifest) {
		var namespace string
		var rules []rbacv1.PolicyRule
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			rules = role.Rules
		case *rbacv1.Role:
			namespace, rules = role.Namespace, role.Rules
		}
		for _, rule := range rules {
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						for _, verb := range rule.Verbs {
							seen[key(namespace, group, resource, name, verb)] = true
						}
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func decode(t *testing.T, manifest []byte) (objects []runtime.Object) {
	t.Helper()
	for docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		objects = append(objects, object)
	}
}

// TestNeedsFollowTheFlags: what is turned off is not asked for.
func TestNeedsFollowTheFlags(t *testing.T) {
	resources := func(o Options) (names []string) {
		for _, n := range o.Needs() {
			if object := n.Resource + " " + n.Namespace; !slices.Contains(names, object) {
				names = append(names, object)
			}
		}
		return names
	}
	for _, tc := range []struct {
		o    Options
		want []string
	}{
		{Options{Namespace: "a"}, []string{"pods ", "configmaps a"}},
		{Options{Namespace: "a", WatchNamespace: "b"}, []string{"pods b", "configmaps a"}},
		{Options{Namespace: "a", Nodes: true}, []string{"pods ", "nodes ", "configmaps a"}},
		// Claims are read everywhere, whatever pods are counted.
		{Options{Namespace: "a", WatchNamespace: "b", DRA: true}, []string{"pods b", "deviceclasses ", "resourceclaims ", "resourceslices ", "configmaps a"}},
		{Options{Namespace: "a", Lease: "l"}, []string{"pods ", "configmaps a", "leases a"}},
		{Options{Namespace: "a", Events: true}, []string{"pods ", "configmaps a", "events a"}},
		{Options{Namespace: "a", Events: true, Nodes: true}, []string{"pods ", "nodes ", "configmaps a", "events a", "events default"}},
		{Options{Namespace: "default", Events: true, Nodes: true}, []string{"pods ", "nodes ", "configmaps default", "events default"}},
		{Options{Namespace: "a", Authentication: true}, []string{"pods ", "configmaps a", "tokenreviews ", "subjectaccessreviews "}},
	} {
		if diff := cmp.Diff(tc.want, resources(tc.o)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.o, diff)
		}
	}
}

// TestOnlyWhatDegradesIsOptional: DRA and Events are done without, nothing else is.
func TestOnlyWhatDegradesIsOptional(t *testing.T) {
	for _, n := range everything.Needs() {
		want := n.Group == "resource.k8s.io" || n.Resource == "events"
		if got := n.Optional != ""; got != want {
			t.Errorf("%s: optional is %t, want %t", n.object(), got, want)
		}
		if n.For == "" || len(n.Verbs) == 0 {
			t.Errorf("%s: says not what for, or has no verb", n.object())
		}
	}
}
