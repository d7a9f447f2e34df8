package gather

import (
	"bytes"
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
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// apiServer lists a cluster as an API server does.
type apiServer struct {
	*httptest.Server
	t       *testing.T
	objects map[string][]metav1.Object // by resource, in the order of their keys
	version int                        // of everything; it moves on with each request

	protobuf bool
	served   []string                                            // what discovery has of resource.k8s.io/v1, nil for no such version
	groups   *metav1.APIGroupList                                // nil if nobody is told
	refuse   map[string]*apierrors.StatusError                   // by resource
	before   func(resource, token string) *apierrors.StatusError // may refuse a page, and change objects

	mu    sync.Mutex
	lists []string // "pods?limit=500"
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{
		t: t, version: 100, served: draResources,
		objects: make(map[string][]metav1.Object), refuse: make(map[string]*apierrors.StatusError),
		before: func(string, string) *apierrors.StatusError { return nil },
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) client() kubernetes.Interface {
	s.t.Helper()
	config := &rest.Config{Host: s.URL, QPS: -1}
	if s.protobuf {
		config.ContentConfig = rest.ContentConfig{
			ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
		}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// add adds objects, and keeps them in the order of their keys.
func (s *apiServer) add(resource string, objects ...metav1.Object) {
	s.objects[resource] = append(s.objects[resource], objects...)
	slices.SortFunc(s.objects[resource], func(a, b metav1.Object) int { return strings.Compare(keyOf(a), keyOf(b)) })
}

func (s *apiServer) remove(resource, key string) {
	s.objects[resource] = slices.DeleteFunc(s.objects[resource], func(o metav1.Object) bool { return keyOf(o) == key })
}

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	switch r.URL.Path {
	case "/apis/resource.k8s.io/v1":
		switch {
		case s.refuse["discovery"] != nil:
			s.sendError(w, s.refuse["discovery"])
		case s.served == nil:
			s.sendError(w, apierrors.NewNotFound(schema.GroupResource{}, ""))
		default:
			list := metav1.APIResourceList{GroupVersion: "resource.k8s.io/v1"}
			for _, name := range s.served {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
			}
			s.sendJSON(w, &list)
		}
	case "/apis", "/api":
		if s.groups == nil {
			s.sendError(w, apierrors.NewInternalError(fmt.Errorf("no groups")))
			return
		}
		s.sendJSON(w, s.groups)
	default:
		s.list(w, r)
	}
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	namespace := ""
	if _, rest, ok := strings.Cut(r.URL.Path, "/namespaces/"); ok {
		namespace, _, _ = strings.Cut(rest, "/")
	}
	after := q.Get("continue")
	seen := resource + "?limit=" + q.Get("limit")
	for _, name := range []string{"fieldSelector", "labelSelector"} {
		if v := q.Get(name); v != "" {
			seen += "&" + name + "=" + v
		}
	}
	if namespace != "" {
		seen = namespace + "/" + seen
	}
	s.lists = append(s.lists, seen)
	if err := s.refuse[resource]; err != nil {
		s.sendError(w, err)
		return
	}
	if err := s.before(resource, after); err != nil {
		s.sendError(w, err)
		return
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	var page []runtime.Object
	token := ""
	for _, o := range s.objects[resource] {
		if key := keyOf(o); key <= tokenKey(after) || namespace != "" && o.GetNamespace() != namespace {
			continue
		}
		if len(page) == limit {
			token = "after " + keyOf(page[limit-1].(metav1.Object))
			break
		}
		page = append(page, o.(runtime.Object))
	}
	list := map[string]runtime.Object{
		"pods": &corev1.PodList{}, "nodes": &corev1.NodeList{}, "deviceclasses": &resourcev1.DeviceClassList{},
		"resourceslices": &resourcev1.ResourceSliceList{}, "resourceclaims": &resourcev1.ResourceClaimList{},
	}[resource]
	if err := meta.SetList(list, page); err != nil {
		s.t.Error(err)
	}
	of, _ := meta.ListAccessor(list)
	of.SetResourceVersion(strconv.Itoa(s.version))
	of.SetContinue(token)
	s.send(w, list)
}

// tokenKey is the last key before a page. A token that goes on in another version
// says so.
func tokenKey(token string) string {
	return strings.TrimPrefix(strings.TrimPrefix(token, "inconsistent "), "after ")
}

func (s *apiServer) send(w http.ResponseWriter, obj runtime.Object) {
	if !s.protobuf {
		s.sendJSON(w, obj)
		return
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		s.t.Error(err)
		return
	}
	obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	var b bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &b); err != nil {
		s.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	_, _ = w.Write(b.Bytes())
}

func (s *apiServer) sendJSON(w http.ResponseWriter, obj any) {
	w.Header().Set("Content-Type", "application/json")
	if o, ok := obj.(runtime.Object); ok {
		if kinds, _, err := scheme.Scheme.ObjectKinds(o); err == nil {
			o.GetObjectKind().SetGroupVersionKind(kinds[0])
		}
	}
	_ = json.NewEncoder(w).Encode(obj)
}

func (s *apiServer) sendError(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

func forbidden(resource string) *apierrors.StatusError {
	group := ""
	if slices.Contains(draResources, resource) {
		group = "resource.k8s.io"
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "", fmt.Errorf("not for you"))
}

// expired is what a server says of a page token that is too old. With next the list can be
// gone on with.
func expired(next string) *apierrors.StatusError {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old")
	err.ErrStatus.Continue = next
	return err
}
