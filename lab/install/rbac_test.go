package install_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpu-summary/gpu-summary-controller/internal/preflight"
)

// TestTheChartGrantsTheNeedsAndNothingElse, whatever is turned on and off: each
// value that changes what the controller does changes what it may.
func TestTheChartGrantsTheNeedsAndNothingElse(t *testing.T) {
	defaults := preflight.Options{Namespace: "gpu-summary", Nodes: true, DRA: true, Lease: "gpu-summary-controller", Events: true, Authentication: true}
	with := func(change func(*preflight.Options)) preflight.Options {
		o := defaults
		change(&o)
		return o
	}
	for name, tc := range map[string]struct {
		values string
		needs  preflight.Options
	}{
		"defaults":      {"", defaults},
		"no nodes":      {"count: {nodes: false}", with(func(o *preflight.Options) { o.Nodes = false })},
		"one namespace": {"count: {namespace: team}", with(func(o *preflight.Options) { o.WatchNamespace = "team" })},
		"another name":  {"publish: {name: other}", with(func(o *preflight.Options) { o.Lease = "other-controller" })},
		"no events":     {"publish: {events: false}", with(func(o *preflight.Options) { o.Events = false })},
		"no election":   {"replicaCount: 1\nleaderElection: {enabled: false}", with(func(o *preflight.Options) { o.Lease = "" })},
		"open":          {"http: {auth: none}", with(func(o *preflight.Options) { o.Authentication = false })},
		"everything": {everything(t), preflight.Options{
			Namespace: "gpu-summary", WatchNamespace: "team", Nodes: true, DRA: true, Lease: "other-controller", Events: true, Authentication: true,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			needed := map[string]bool{}
			for _, n := range tc.needs.Needs() {
				for _, verb := range n.Verbs {
					needed[permission(n.Namespace, n.Group, n.Resource, n.Name, verb)] = true
				}
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(needed)), granted(t, render(t, tc.values))); diff != "" {
				t.Errorf("permissions (-needed +granted by the chart):\n%s", diff)
			}
		})
	}
}

func permission(namespace, group, resource, name, verb string) string {
	return fmt.Sprintf("%s %s.%s named %q in namespace %q", verb, resource, group, name, namespace)
}

// granted lists what the controller's account may do by the roles that are bound to
// it.
func granted(t *testing.T, manifest string) []string {
	t.Helper()
	found := objects(t, manifest)
	seen := map[string]bool{}
	for _, object := range found {
		if object.GetKind() != "RoleBinding" && object.GetKind() != "ClusterRoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding
		convert(t, object.Object, &binding)
		account := binding.Subjects[0]
		if found[account.Kind+" "+account.Namespace+"/"+account.Name] == nil || len(binding.Subjects) != 1 {
			t.Errorf("%s is bound to %+v, which the chart does not have", binding.Name, binding.Subjects)
		}
		bound := found[binding.RoleRef.Kind+" "+binding.Namespace+"/"+binding.RoleRef.Name]
		if bound == nil {
			t.Fatalf("%s is bound to %+v, which the chart does not have", binding.Name, binding.RoleRef)
		}
		var role rbacv1.Role
		convert(t, bound.Object, &role)
		for _, rule := range role.Rules {
			for _, p := range permissions(role.Namespace, rule) {
				seen[p] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func permissions(namespace string, rule rbacv1.PolicyRule) (list []string) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, name := range names {
				for _, verb := range rule.Verbs {
					list = append(list, permission(namespace, group, resource, name, verb))
				}
			}
		}
	}
	return list
}

// convert reads an object as what it is, and nothing else.
func convert(t *testing.T, object map[string]any, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, into, true); err != nil {
		t.Fatal(err)
	}
}
