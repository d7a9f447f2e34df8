package gather

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestRefused: what is missing is named, with what to do; of what can be done
// without, everything else is read.
func TestRefused(t *testing.T) {
	pods := "list pods in all namespaces: pods is forbidden: not for you (ask for a role with the verb list on pods in all namespaces)"
	nodes := "list nodes of the cluster: nodes is forbidden: not for you (ask for a role with the verb list on nodes of the cluster)"
	dra := func(resource, where string) string {
		return fmt.Sprintf("list %s %s: %s.resource.k8s.io is forbidden: not for you (ask for a role with the verb list on %s %s)", resource, where, resource, resource, where)
	}
	unknown := apierrors.NewUnauthorized("who are you")
	broken := apierrors.NewInternalError(errors.New("no leader"))
	for name, tc := range map[string]struct {
		refuse    map[string]*apierrors.StatusError
		namespace string
		err       string
		missing   []string
		state     count.DRAState
		reason    string
	}{
		"pods":           {refuse: map[string]*apierrors.StatusError{"pods": forbidden("pods")}, err: pods},
		"pods of one":    {refuse: map[string]*apierrors.StatusError{"pods": forbidden("pods")}, namespace: "a", err: strings.ReplaceAll(pods, "all namespaces", "namespace a")},
		"not known":      {refuse: map[string]*apierrors.StatusError{"pods": unknown}, err: "list pods in all namespaces: who are you (the API server does not know who you are: log in again)"},
		"nodes":          {refuse: map[string]*apierrors.StatusError{"nodes": forbidden("nodes")}, missing: []string{nodes}, state: count.DRASynced},
		"part of DRA":    {refuse: map[string]*apierrors.StatusError{"resourceslices": forbidden("resourceslices")}, missing: []string{dra("resourceslices", "of the cluster")}, state: count.DRAForbidden, reason: "no permission to list resourceslices in resource.k8s.io"},
		"DRA is in need": {refuse: map[string]*apierrors.StatusError{"resourceclaims": broken, "deviceclasses": forbidden("deviceclasses")}, missing: []string{dra("deviceclasses", "of the cluster"), "list resourceclaims in all namespaces: Internal error occurred: no leader"}, state: count.DRAUnreachable, reason: "resourceclaims of resource.k8s.io could not be read"},
		"all optional": {
			refuse:  map[string]*apierrors.StatusError{"nodes": forbidden("nodes"), "deviceclasses": forbidden("deviceclasses"), "resourceslices": forbidden("resourceslices"), "resourceclaims": forbidden("resourceclaims")},
			missing: []string{nodes, dra("deviceclasses", "of the cluster"), dra("resourceslices", "of the cluster"), dra("resourceclaims", "in all namespaces")},
			state:   count.DRAForbidden, reason: "no permission to list deviceclasses, resourceslices, resourceclaims in resource.k8s.io",
		},
		"discovery": {
			refuse:  map[string]*apierrors.StatusError{"discovery": forbidden("")},
			missing: []string{`ask whether the API server serves resource.k8s.io/v1: forbidden: not for you (ask for the role system:discovery)`},
			state:   count.DRAForbidden, reason: "the API server does not tell us what it serves",
		},
		"discovery in need": {
			refuse:  map[string]*apierrors.StatusError{"discovery": broken},
			missing: []string{"ask whether the API server serves resource.k8s.io/v1: Internal error occurred: no leader"},
			state:   count.DRAUnreachable, reason: "the API server did not say whether it serves resource.k8s.io/v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := filled(t, 3)
			s.refuse = tc.refuse
			var h heard
			r, err := Cluster(t.Context(), s.client(), Scope{Namespace: tc.namespace, Nodes: true, DRA: true}, &h)
			if fmt.Sprint(err) != tc.err && (err != nil || tc.err != "") {
				t.Errorf("the error is\n%v\nwant\n%s", err, tc.err)
			}
			var missing []string
			for _, err := range r.Missing {
				missing = append(missing, err.Error())
			}
			if !slices.Equal(missing, tc.missing) {
				t.Errorf("missing is\n%s\nwant\n%s", strings.Join(missing, "\n"), strings.Join(tc.missing, "\n"))
			}
			if r.DRA != tc.state || r.DRAReason != tc.reason {
				t.Errorf("DRA is %s, %q; want %s, %q", r.DRA, r.DRAReason, tc.state, tc.reason)
			}
			if r.NodesKnown != (tc.err == "" && tc.refuse["nodes"] == nil) {
				t.Errorf("nodes known: %v", r.NodesKnown)
			}
		})
	}
}

// TestWithoutDRA: that there is none is no error, and it is said what there is.
func TestWithoutDRA(t *testing.T) {
	old := &metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "apps"}, {Name: "resource.k8s.io", Versions: []metav1.GroupVersionForDiscovery{
		{GroupVersion: "resource.k8s.io/v1beta2", Version: "v1beta2"}, {GroupVersion: "resource.k8s.io/v1beta1", Version: "v1beta1"},
	}}}}
	for want, s := range map[string]struct {
		served []string
		groups *metav1.APIGroupList
	}{
		"the API server does not serve resource.k8s.io":                                {nil, &metav1.APIGroupList{}},
		"the API server does not serve resource.k8s.io/v1":                             {nil, nil},
		"the API server serves resource.k8s.io in version v1beta1, v1beta2, not in v1": {nil, old},
		"the API server serves resource.k8s.io/v1 without resourceslices":              {[]string{"deviceclasses", "resourceclaims"}, nil},
	} {
		server := filled(t, 1)
		server.served, server.groups = s.served, s.groups
		r, err := Cluster(t.Context(), server.client(), everything, &heard{})
		if err != nil || r.DRA != count.DRAAbsent || r.DRAReason != want || len(r.Missing) > 0 || r.Told.Total() != 3 {
			t.Errorf("%v, %+v; want it absent for %q", err, r, want)
		}
	}
}
