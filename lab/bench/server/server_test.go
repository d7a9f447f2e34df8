package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

var small = Size{Nodes: 30, Pods: 1_100, GPUPods: 40, GPUNodes: 15}

// patience bounds every wait of a test; none should come near it.
const patience = time.Minute

// start serves, and returns a client.
func start(t *testing.T, o Options) (*Server, *kubernetes.Clientset) {
	t.Helper()
	if o.Nodes == 0 {
		o.Size = small
	}
	o.Summary = "gpu-summary"
	s, err := Listen("127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		// Ends before the test's cleanup begins.
		if err := s.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(wg.Wait)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: s.Certificate()}, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v", what, patience)
		}
	}
}

// TestPagesAreOneState: what changes between two pages is in neither.
func TestPagesAreOneState(t *testing.T) {
	s, client := start(t, Options{})
	pages := 0
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (_ runtime.Object, err error) {
		if pages++; pages > 1 {
			s.cluster.irrelevant()
			s.cluster.bind()
			return client.CoreV1().Pods("").List(ctx, o)
		}
		// A list of nodes that is under way at the same version is another one.
		defer func() {
			if _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				t.Error(err)
			}
		}()
		return client.CoreV1().Pods("").List(ctx, o)
	})
	p.PageSize = 500
	obj, _, err := p.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := meta.ListAccessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	if n := meta.LenList(obj); pages != 3 || n != small.Pods || list.GetResourceVersion() != fmt.Sprint(firstChange) {
		t.Errorf("%d pods in %d pages at %s", n, pages, list.GetResourceVersion())
	}
	if _, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 1, Continue: "1.1"}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a list that nobody began goes on: %v", err)
	}
}

func TestWatchFromAVersion(t *testing.T) {
	s, client := start(t, Options{})
	s.cluster.bind()
	w, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: fmt.Sprint(firstChange)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	s.cluster.finish()
	for _, want := range []watch.EventType{watch.Added, watch.Modified} {
		if event := next(t, w); event.Type != want {
			t.Errorf("%s, want %s", event.Type, want)
		}
	}
	if _, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "7"}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from before the beginning of time: %v", err)
	}
}

func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return event
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	return watch.Event{}
}

// TestRefusesWatchLists: as old servers do, with the status that client-go takes for that.
func TestRefusesWatchLists(t *testing.T) {
	_, client := start(t, Options{NoWatchList: true})
	_, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
	if !apierrors.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
}

func TestConfigMapsConflict(t *testing.T) {
	s, client := start(t, Options{})
	maps := client.CoreV1().ConfigMaps("x")
	w, err := maps.Watch(t.Context(), metav1.ListOptions{LabelSelector: "mine=yes"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	first, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"mine": "yes"}}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(t.Context(), first, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	second := first.DeepCopy()
	second.Data["k"] = "2"
	if second, err = maps.Update(t.Context(), second, metav1.UpdateOptions{}); err != nil || second.ResourceVersion == first.ResourceVersion {
		t.Fatalf("updated to %s: %v", second.ResourceVersion, err)
	}
	if _, err := maps.Update(t.Context(), first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v", err)
	}
	same, err := maps.Update(t.Context(), second, metav1.UpdateOptions{})
	if err != nil || same.ResourceVersion != second.ResourceVersion {
		t.Errorf("an update that changes nothing: version %s, %v", same.ResourceVersion, err)
	}
	bad := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To[types.UID]("another")}}
	if err := maps.Delete(t.Context(), "a", bad); !apierrors.IsConflict(err) {
		t.Errorf("deleted somebody else's: %v", err)
	}
	// Without its label it is gone for who watches the label.
	plain := second.DeepCopy()
	plain.Labels = nil
	if _, err := maps.Update(t.Context(), plain, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []watch.EventType
	for range 3 {
		got = append(got, next(t, w).Type)
	}
	if want := []watch.EventType{watch.Added, watch.Modified, watch.Deleted}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	big := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Data: map[string]string{"k": string(make([]byte, corev1.MaxSecretSize+1))}}
	if _, err := maps.Create(t.Context(), big, metav1.CreateOptions{}); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("more than a MiB: %v", err)
	}
	if c := s.counts.state(0).Counts["configmaps update"]; c.Requests != 4 || c.Failed != 1 || c.BytesIn == 0 || c.BytesOut == 0 {
		t.Errorf("counted %+v", c)
	}
}

// TestOtherObjects: leases, Events and discovery, as clients use them.
func TestOtherObjects(t *testing.T) {
	_, client := start(t, Options{})
	ctx := t.Context()
	lease, err := client.CoordinationV1().Leases("x").Create(ctx, newLease("l"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lease.Spec.HolderIdentity = ptr.To("me")
		_, err := client.CoordinationV1().Leases("x").Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := client.EventsV1().Events("x").Create(ctx, newEvent(), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := client.Discovery().ServerResourcesForGroupVersion("resource.k8s.io/v1"); !apierrors.IsNotFound(err) {
		t.Errorf("resource.k8s.io is served: %v", err)
	}
	if v, err := client.Discovery().ServerVersion(); err != nil || v.GitVersion != Version {
		t.Errorf("version %v, %v", v, err)
	}
	if _, _, err := client.Discovery().ServerGroupsAndResources(); err != nil {
		t.Errorf("discovery: %v", err)
	}
}

func newLease(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func newEvent() *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e-"}, Reason: "Published", Type: "Normal", Action: "Publish",
		Regarding: corev1.ObjectReference{Kind: "ConfigMap", Name: "gpu-summary", Namespace: "x"}, ReportingController: "test", ReportingInstance: "test",
		EventTime: metav1.NewMicroTime(created.Time),
	}
}
