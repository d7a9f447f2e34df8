package gather

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

var everything = Scope{Nodes: true, DRA: true}

func testPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// filled has so many pods, and one or two of all else.
func filled(t *testing.T, pods int) *apiServer {
	s := newAPIServer(t)
	for i := range pods {
		s.add("pods", testPod([]string{"a", "b"}[i%2], fmt.Sprintf("p-%05d", i)))
	}
	s.add("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}})
	s.add("deviceclasses", &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	s.add("resourceslices", &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
	s.add("resourceclaims", &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "c"}})
	return s
}

// TestCluster: everything, once each, in pages, whatever is spoken.
func TestCluster(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		for _, pods := range []int{0, 1, pageSize, pageSize + 1, 2*pageSize + 100} {
			t.Run(fmt.Sprintf("protobuf %v, %d pods", protobuf, pods), func(t *testing.T) {
				s := filled(t, pods)
				s.protobuf = protobuf
				var h heard
				r, err := Cluster(t.Context(), s.client(), everything, &h)
				if err != nil {
					t.Fatal(err)
				}
				pages := max(1, (pods+pageSize-1)/pageSize)
				want := Report{
					Told: Told{Pods: pods, Nodes: 2, DeviceClasses: 1, ResourceSlices: 1, ResourceClaims: 1}, NodesKnown: true, DRA: count.DRASynced,
					Observed: count.Observed{
						Pods: "101", Nodes: fmt.Sprint(101 + pages), Classes: fmt.Sprint(103 + pages), Slices: fmt.Sprint(104 + pages), Claims: fmt.Sprint(105 + pages),
					},
				}
				if fmt.Sprint(r) != fmt.Sprint(want) {
					t.Errorf("got  %+v\nwant %+v", r, want)
				}
				if len(h.objects) != r.Told.Total() || len(slices.Compact(slices.Sorted(slices.Values(h.objects)))) != pods+5 {
					t.Errorf("%d objects were told", len(h.objects))
				}
				for _, list := range s.lists {
					if !strings.Contains(list, "?limit=500") {
						t.Errorf("list %s", list)
					}
				}
			})
		}
	}
}

// TestScope: what is not asked for is not read, and selecting is the server's work.
func TestScope(t *testing.T) {
	parse := func(text string) labels.Selector {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return selector
	}
	const active = "pods?limit=500&fieldSelector=status.phase!=Succeeded,status.phase!=Failed"
	for name, tc := range map[string]struct {
		scope Scope
		lists []string
		told  Told
	}{
		"pods alone":      {Scope{}, []string{active}, Told{Pods: 4}},
		"finished ones":   {Scope{FinishedPods: true}, []string{"pods?limit=500"}, Told{Pods: 4}},
		"of a namespace":  {Scope{Namespace: "a"}, []string{"a/" + active}, Told{Pods: 2}},
		"by label":        {Scope{PodSelector: parse("team=x")}, []string{active + "&labelSelector=team=x"}, Told{Pods: 4}},
		"nodes":           {Scope{Nodes: true}, []string{active, "nodes?limit=500"}, Told{Pods: 4, Nodes: 2}},
		"nodes by label":  {Scope{Nodes: true, NodeSelector: parse("pool in (x,y)")}, []string{active, "nodes?limit=500&labelSelector=pool in (x,y)"}, Told{Pods: 4, Nodes: 2}},
		"DRA, everywhere": {Scope{Namespace: "a", DRA: true}, []string{"a/" + active, "deviceclasses?limit=500", "resourceslices?limit=500", "resourceclaims?limit=500"}, Told{Pods: 2, DeviceClasses: 1, ResourceSlices: 1, ResourceClaims: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := filled(t, 4)
			r, err := Cluster(t.Context(), s.client(), tc.scope, &heard{})
			if err != nil || !slices.Equal(s.lists, tc.lists) || r.Told != tc.told || r.NodesKnown != tc.scope.Nodes || (r.DRA != "") != tc.scope.DRA {
				t.Errorf("%v, lists %q, report %+v; want %q, %+v", err, s.lists, r, tc.lists, tc.told)
			}
		})
	}
}

// TestExpired: a list that expires under way is gone on with behind what was told, and
// nothing is told twice, whatever has changed.
func TestExpired(t *testing.T) {
	s := filled(t, 4*pageSize)
	pages := 0
	s.before = func(resource, token string) *apierrors.StatusError {
		if resource != "pods" || token == "" || strings.HasPrefix(token, "inconsistent") {
			return nil
		}
		if pages++; pages%2 == 0 {
			return nil
		}
		s.add("pods", testPod("a", "a-new"), testPod("z", fmt.Sprintf("new-%d", pages)))
		s.remove("pods", "b/p-01999")
		return expired("inconsistent " + token)
	}
	var h heard
	r, err := Cluster(t.Context(), s.client(), Scope{}, &h)
	if err != nil {
		t.Fatal(err)
	}
	told := make(map[string]int)
	for _, object := range h.objects {
		told[object]++
	}
	for object, n := range told {
		if n != 1 {
			t.Errorf("told %d times: %s", n, object)
		}
	}
	// Those that came in front of what was told are not there, that which went is not, and two came behind.
	if len(told) != 4*pageSize-1+2 || r.Told.Pods != len(told) || r.Observed.Pods != "101" || pages < 3 {
		t.Errorf("%d pods were told, %d said to be, from version %s, after %d pages", len(told), r.Told.Pods, r.Observed.Pods, pages)
	}
}

// TestPagesThatDoNotEnd: whatever a server does, reading ends.
func TestPagesThatDoNotEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(n int, token string) *apierrors.StatusError
		want   string
	}{
		"expired without a token": {func(_ int, token string) *apierrors.StatusError {
			if token != "" {
				return expired("")
			}
			return nil
		}, "list pods in all namespaces: The provided continue parameter is too old (the API server forgets faster than it is read: try again)"},
		"expired at once": {func(int, string) *apierrors.StatusError { return expired("") },
			"list pods in all namespaces: The provided continue parameter is too old (the API server forgets faster than it is read: try again)"},
		"expired with the same token": {func(_ int, token string) *apierrors.StatusError {
			if token != "" {
				return expired(token)
			}
			return nil
		}, "list pods in all namespaces: The provided continue parameter is too old (the API server forgets faster than it is read: try again)"},
		"expired again and again": {func(n int, token string) *apierrors.StatusError {
			if token != "" {
				return expired(fmt.Sprint("another ", n))
			}
			return nil
		}, "list pods in all namespaces: The provided continue parameter is too old (the API server forgets faster than it is read: try again)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := filled(t, 2*pageSize)
			n := 0
			s.before = func(_, token string) *apierrors.StatusError { n++; return tc.before(n, token) }
			_, err := Cluster(t.Context(), s.client(), everything, &heard{})
			if err == nil || err.Error() != tc.want {
				t.Errorf("the error is %v, want %s", err, tc.want)
			}
			if n > expiries+5 {
				t.Errorf("%d pages were asked for", n)
			}
		})
	}
	t.Run("the same page for ever", func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &corev1.PodList{ListMeta: metav1.ListMeta{Continue: "x"}}, nil
		})
		_, err := Cluster(t.Context(), client, Scope{}, &heard{})
		if want := "list pods in all namespaces: the API server sends the same page again and again"; err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	})
}

// TestEnds: with ctx, and with a server that does not answer.
func TestEnds(t *testing.T) {
	why := errors.New("enough")
	for _, resource := range []string{"pods", "nodes", "deviceclasses"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := filled(t, 1)
		s.before = func(r, _ string) *apierrors.StatusError {
			if r == resource {
				cancel(why)
			}
			return nil
		}
		if _, err := Cluster(ctx, s.client(), everything, &heard{}); !errors.Is(err, why) {
			t.Errorf("ended at %s: %v", resource, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context, _ metav1.ListOptions) (*corev1.PodList, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		_, err := list(t.Context(), "pods", "", metav1.ListOptions{}, silent, func(*corev1.PodList) {})
		if want := "list pods in all namespaces: the API server did not answer within 2m0s"; err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	})
}

// TestAll: several visitors are told the same, of all kinds.
func TestAll(t *testing.T) {
	var a, b heard
	s := filled(t, 3)
	r, err := Cluster(t.Context(), s.client(), everything, All{&a, &b})
	if err != nil || !a.same(&b) || len(a.objects) != r.Told.Total() {
		t.Errorf("%v; %q and %q", err, a.objects, b.objects)
	}
	kinds := make(map[string]bool)
	for _, object := range a.objects {
		kinds[strings.Fields(object)[0]] = true
	}
	if len(kinds) != 5 {
		t.Errorf("kinds are %q", slices.Sorted(maps.Keys(kinds)))
	}
}
