package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2/ktesting"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/discover"
)

// heard is a handler that counts.
type heard struct{ dra, other atomic.Int64 }

func (h *heard) PodChanged(_, _ *count.Pod)                     { h.other.Add(1) }
func (h *heard) NodeChanged(_, _ *count.Node)                   { h.other.Add(1) }
func (h *heard) SummaryChanged(_, _ *corev1.ConfigMap)          { h.other.Add(1) }
func (h *heard) DeviceClassChanged(_, _ *count.DeviceClass)     { h.other.Add(1) }
func (h *heard) ResourceSliceChanged(_, _ *count.ResourceSlice) { h.other.Add(1) }
func (h *heard) ResourceClaimChanged(_, _ *count.ResourceClaim) { h.other.Add(1) }
func (h *heard) DRAChanged()                                    { h.dra.Add(1) }

// server is an API server whose DRA comes and goes.
type server struct {
	*fake.Clientset
	heard

	mu        sync.Mutex
	versions  []string
	down      bool
	forbidden map[string]bool
	asked     int // for what it serves
}

func newServer(objects ...runtime.Object) *server {
	s := &server{Clientset: fake.NewClientset(objects...), forbidden: map[string]bool{}}
	s.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		gr := action.GetResource().GroupResource()
		if s.forbidden[gr.Resource] {
			return true, nil, apierrors.NewForbidden(gr, "", errors.New("RBAC"))
		}
		return false, nil, nil
	})
	return s
}

// set changes the server.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *server) Discovery() discovery.DiscoveryInterfaces {
	return discoverable{s.Clientset.Discovery().(*fakediscovery.FakeDiscovery), s}
}

// discoverable says what the server serves. (The fake's own list is not safe to
// change.)
type discoverable struct {
	*fakediscovery.FakeDiscovery
	*server
}

func (d discoverable) ServerResourcesForGroupVersionWithContext(_ context.Context, gv string) (*metav1.APIResourceList, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if d.down {
		return nil, apierrors.NewServiceUnavailable("down")
	}
	if !slices.Contains(d.versions, strings.TrimPrefix(gv, resourcev1.GroupName+"/")) {
		return nil, apierrors.NewNotFound(resourcev1.Resource(""), "")
	}
	list := &metav1.APIResourceList{GroupVersion: gv}
	for _, r := range discover.DRAResources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: r})
	}
	return list, nil
}

func (d discoverable) ServerGroupsWithContext(context.Context) (*metav1.APIGroupList, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	group := metav1.APIGroup{Name: resourcev1.GroupName}
	for _, v := range d.versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: v})
	}
	if len(group.Versions) == 0 {
		return &metav1.APIGroupList{}, nil
	}
	return &metav1.APIGroupList{Groups: []metav1.APIGroup{group}}, nil
}

// run watches DRA in virtual time for as long as the test does.
func (s *server) run(t *testing.T) *dra {
	names, err := count.ParseNames(count.DefaultNames()...)
	if err != nil {
		t.Fatal(err)
	}
	d := newDRA(s, Options{Names: names}, &s.heard)
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); d.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return d
}

// is checks the state after everything that can happen now has happened.
func (d *dra) is(t *testing.T, state count.DRAState, reason string) {
	t.Helper()
	synctest.Wait()
	if got, why := d.status(); got != state || why != reason {
		t.Fatalf("the state is %s (%s), want %s (%s)", got, why, state, reason)
	}
}

const (
	none      = "the API server does not serve resource.k8s.io"
	old       = "the API server serves resource.k8s.io in version v1beta1, v1beta2, not in v1"
	noClaims  = "no permission to list and watch resourceclaims in resource.k8s.io"
	noAnswer  = "the API server did not say whether it serves resource.k8s.io/v1"
	longRetry = lastDRARetry + draGrace + time.Second
)

// TestDRAIsFoundWhenItAppears: absent, unreachable and forbidden are three states,
// each is left without a restart, and none is asked about at a run (B4).
func TestDRAIsFoundWhenItAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"}})
		d := s.run(t)
		d.is(t, count.DRAAbsent, none)

		time.Sleep(time.Hour)
		var asked int
		s.set(func() { asked = s.asked })
		if asked > 20 || asked < 10 {
			t.Errorf("asked %d times in an hour; want about once in 5 minutes", asked)
		}
		if n := s.dra.Load(); n != 1 {
			t.Errorf("an hour of the same state was announced %d times", n)
		}

		s.set(func() { s.versions = []string{"v1beta1", "v1beta2"} })
		time.Sleep(longRetry)
		d.is(t, count.DRAAbsent, old)

		s.set(func() { s.down = true })
		time.Sleep(longRetry)
		d.is(t, count.DRAUnreachable, noAnswer)

		s.set(func() { s.down, s.versions, s.forbidden["resourceclaims"] = false, []string{"v1"}, true })
		time.Sleep(longRetry)
		d.is(t, count.DRAForbidden, noClaims)
		time.Sleep(time.Hour)
		d.is(t, count.DRAForbidden, noClaims)
		if n := s.dra.Load(); n != 4 {
			t.Errorf("4 states were announced %d times", n)
		}
		if n := s.other.Load(); n != 0 {
			t.Errorf("%d changes were announced that no pass can see", n)
		}

		s.set(func() { s.forbidden["resourceclaims"] = false })
		time.Sleep(longRetry)
		d.is(t, count.DRASynced, "")
		if w := d.world(); len(w.Classes) != 1 || w.Classes[0].Name != "gpu.nvidia.com" {
			t.Errorf("%d classes", len(w.Classes))
		}
	})
}

// TestDRAIsLeftWhenItGoesAway: a refused request ends the counting and says why,
// and it is taken up again.
func TestDRAIsLeftWhenItGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"}})
		s.set(func() { s.versions = []string{"v1"} })
		d := s.run(t)
		d.is(t, count.DRASynced, "")
		d.mu.Lock()
		session := d.session
		d.mu.Unlock()

		// A network that fails is no reason to forget what is known.
		session.note("resourceclaims", apierrors.NewServiceUnavailable("later"))
		time.Sleep(time.Minute)
		d.is(t, count.DRASynced, "")

		s.set(func() { s.forbidden["resourceclaims"] = true })
		session.note("resourceclaims", apierrors.NewForbidden(resourcev1.Resource("resourceclaims"), "", errors.New("RBAC")))
		time.Sleep(2 * draGrace)
		d.is(t, count.DRAForbidden, noClaims)
		if w := d.world(); w.Classes != nil {
			t.Errorf("%d classes are still counted", len(w.Classes))
		}
		var o count.Observed
		if d.observe(&o, (*source).version); o != (count.Observed{}) {
			t.Errorf("versions of stores that are not counted: %+v", o)
		}

		s.set(func() { s.forbidden["resourceclaims"] = false })
		time.Sleep(3 * firstDRARetry)
		d.is(t, count.DRASynced, "")
	})
}

// TestNobodyWaitsForDRA for longer than he wants to.
func TestNobodyWaitsForDRA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := &Watch{dra: newDRA(s, Options{}, &s.heard)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		w.WaitForDRA(ctx) // nobody runs it
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("waited %v", waited)
		}
		if state, _ := w.DRA(); state != count.DRASyncing {
			t.Errorf("the state is %s", state)
		}
		_, ctx = ktesting.NewTestContext(t)
		w.dra.set(ctx, count.DRAAbsent, none, nil)
		w.WaitForDRA(t.Context())
	})
}
