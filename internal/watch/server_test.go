package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/ktesting"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// apiServer sends pods and nodes as an API server of some version does. What it
// sends is encoded once: it must cost next to nothing.
type apiServer struct {
	*httptest.Server
	t            *testing.T
	pods, nodes  []runtime.Object
	json         bool                // it has no protobuf
	noWatchList  bool                // it does not stream lists
	change       func([]byte) []byte // what becomes of all it sends, if set
	events       map[string]chan []byte
	mu           sync.Mutex
	lists        []string // queries of lists
	resumed      []string // "pods@17" for each watch that begins at a version
	podsAsFrames []byte
	stop         func() // ends what start has started
}

func newAPIServer(t *testing.T, pods, nodes []runtime.Object, change func(*apiServer)) *apiServer {
	s := &apiServer{t: t, pods: pods, nodes: nodes, events: map[string]chan []byte{"pods": make(chan []byte, 100), "nodes": make(chan []byte, 100)}}
	change(s)
	w := &wire{json: s.json}
	for _, pod := range pods {
		w.send(t, apiwatch.Added, pod)
	}
	s.podsAsFrames = s.changed(w.Bytes())
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	watching := q.Get("watch") == "true"
	s.mu.Lock()
	if watching {
		if q.Get("sendInitialEvents") == "" {
			s.resumed = append(s.resumed, kind+"@"+q.Get("resourceVersion"))
		}
	} else {
		s.lists = append(s.lists, kind+"?"+r.URL.RawQuery)
	}
	s.mu.Unlock()
	switch {
	case strings.HasPrefix(r.URL.Path, "/apis"):
		s.refuse(w, apierrors.NewNotFound(corev1.Resource("x"), ""))
	case watching && q.Get("sendInitialEvents") != "" && s.noWatchList:
		s.refuse(w, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil))
	case watching:
		s.watch(w, r, kind)
	default:
		s.list(w, r, kind)
	}
}

func (s *apiServer) refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	_ = json.NewEncoder(w).Encode(err.ErrStatus)
}

func (s *apiServer) contentType() string {
	if s.json {
		return "application/json"
	}
	return "application/vnd.kubernetes.protobuf"
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, kind string) {
	w.Header().Set("Content-Type", s.contentType()+";stream=watch")
	out := &wire{json: s.json}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		end := bookmark("1000000", true).ObjectMeta
		switch kind {
		case "pods":
			_, _ = w.Write(s.podsAsFrames)
			out.send(s.t, apiwatch.Bookmark, &corev1.Pod{ObjectMeta: end})
		case "nodes":
			for _, node := range s.nodes {
				out.send(s.t, apiwatch.Added, node)
			}
			out.send(s.t, apiwatch.Bookmark, &corev1.Node{ObjectMeta: end})
		default:
			out.send(s.t, apiwatch.Bookmark, &corev1.ConfigMap{ObjectMeta: end})
		}
	}
	_, _ = w.Write(s.changed(out.Bytes()))
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case event := <-s.events[kind]:
			_, _ = w.Write(event)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request, kind string) {
	all := map[string][]runtime.Object{"pods": s.pods, "nodes": s.nodes}[kind]
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if limit == 0 {
		limit = len(all)
	}
	to := min(from+limit, len(all))
	meta := metav1.ListMeta{ResourceVersion: "1000000"}
	if to < len(all) {
		meta.Continue = strconv.Itoa(to)
	}
	var list runtime.Object
	switch kind {
	case "pods":
		l := &corev1.PodList{ListMeta: meta}
		for _, pod := range all[from:to] {
			l.Items = append(l.Items, *pod.(*corev1.Pod))
		}
		list = l
	case "nodes":
		l := &corev1.NodeList{ListMeta: meta}
		for _, node := range all[from:to] {
			l.Items = append(l.Items, *node.(*corev1.Node))
		}
		list = l
	default:
		list = &corev1.ConfigMapList{ListMeta: meta}
	}
	w.Header().Set("Content-Type", s.contentType())
	_, _ = w.Write(s.changed(encode(s.t, list, s.json)))
}

func (s *apiServer) changed(sent []byte) []byte {
	if s.change == nil {
		return sent
	}
	return s.change(sent)
}

// start watches the server until the test ends, and returns when all has synced.
func (s *apiServer) start(h Handler) *Watch {
	s.t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{
		ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	o := Options{Names: countedNames(s.t), Nodes: true, Published: Published{Namespace: "ns"}}
	w, err := New(client, o, h)
	if err != nil {
		s.t.Fatal(err)
	}
	_, ctx := ktesting.NewTestContext(s.t)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	s.stop = func() { cancel(); s.CloseClientConnections(); <-done }
	s.t.Cleanup(s.stop)
	if err := w.WaitForSync(ctx); err != nil {
		s.t.Fatal(err)
	}
	return w
}

func randomCluster(seed uint64, pods, nodes int) (p, n []runtime.Object) {
	m := newMaker(seed)
	for i := range pods {
		p = append(p, m.pod(i))
	}
	for i := range nodes {
		n = append(n, m.node(i))
	}
	return p, n
}

// TestEveryKindOfServer: streamed or in pages, in protobuf or JSON, the world is
// what decoding everything gives. Lists are asked for in pages, however client-go
// would ask.
func TestEveryKindOfServer(t *testing.T) {
	pods, nodes := randomCluster(3, 1100, 600)
	names := countedNames(t)
	for _, tc := range []struct {
		json, noWatchList bool
		lists             int // of pods and nodes
	}{{false, false, 0}, {false, true, 5}, {true, false, 0}, {true, true, 5}} {
		t.Run(fmt.Sprintf("json %v, in pages %v", tc.json, tc.noWatchList), func(t *testing.T) {
			var want []*count.Pod
			for _, pod := range pods {
				if r, _ := podKind(names).trim(received(t, pod, tc.json)); r.counts() {
					want = append(want, &r.Pod)
				}
			}
			s := newAPIServer(t, pods, nodes, func(s *apiServer) { s.json, s.noWatchList = tc.json, tc.noWatchList })
			w := s.start(&heard{})
			world, err := w.World()
			if err != nil {
				t.Fatal(err)
			}
			compareByKey(t, world.Pods, want)
			kept, relevant := len(w.nodes.informer.GetStore().ListKeys()), 0
			for _, node := range nodes {
				if r, _ := nodeKind(names).trim(received(t, node, tc.json)); r.HasDevices() {
					relevant++
				}
			}
			if kept != len(nodes) || len(world.Nodes) != relevant || world.Observed.Pods != "1000000" {
				t.Errorf("%d nodes, %d of them in the world at %s, want %d, %d at 1000000", kept, len(world.Nodes), world.Observed.Pods, len(nodes), relevant)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			lists := 0
			for _, query := range s.lists {
				if strings.HasPrefix(query, "pods") || strings.HasPrefix(query, "nodes") {
					lists++
					if !strings.Contains(query, "limit=500") || strings.Contains(query, "resourceVersion=") {
						t.Errorf("list %s", query)
					}
				}
			}
			if lists != tc.lists {
				t.Errorf("%d lists, want %d: %q", lists, tc.lists, s.lists)
			}
		})
	}
}

func compareByKey(t *testing.T, got, want []*count.Pod) {
	t.Helper()
	byKey := func(a, b *count.Pod) int { return strings.Compare(a.Key, b.Key) }
	slices.SortFunc(got, byKey)
	slices.SortFunc(want, byKey)
	if len(got) != len(want) {
		t.Fatalf("%d pods, want %d", len(got), len(want))
	}
	for i := range want {
		if !got[i].Equal(want[i]) {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

// TestRelevantNodes: of nodes without devices those are in the world that something
// is on: nobody would know otherwise that they exist (R3), nor their state (N3).
func TestRelevantNodes(t *testing.T) {
	bare := func(name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"}}
	}
	gpu := bare("gpu")
	gpu.Status.Capacity = corev1.ResourceList{count.NVIDIA: resource.MustParse("8")}
	s := newAPIServer(t, []runtime.Object{gpuPod("a", "bare-pod", 1), gpuPod("b", "gone", 1), gpuPod("c", "", 1), gpuPod("d", "gpu", 1)},
		[]runtime.Object{gpu, bare("bare"), bare("bare-pod"), bare("bare-slice"), bare("bare-device"), bare("bare-claim")}, func(*apiServer) {})
	w := s.start(&heard{})
	var got []string
	for _, node := range w.relevantNodes(&count.DRA{
		Slices: []*count.ResourceSlice{{Node: "bare-slice"}, {Devices: []count.Device{{Node: "bare-device"}, {}}}},
		Claims: []*count.ResourceClaim{{Node: "bare-claim"}, {}, {Node: "gone-too"}},
	}) {
		got = append(got, node.Name)
	}
	slices.Sort(got)
	if want := "bare-claim bare-device bare-pod bare-slice gpu"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
	world, err := w.World()
	if err != nil {
		t.Fatal(err)
	}
	snap := count.Take(world)
	if sum := snap.Of(count.NVIDIA); sum.Orphaned != 1 || sum.Requested != 2 || sum.Pending.Devices != 1 {
		t.Errorf("%d orphaned, %d requested, %d pending; want 1, 2, 1", sum.Orphaned, sum.Requested, sum.Pending.Devices)
	}
}
