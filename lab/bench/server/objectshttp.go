package server

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxBody is what an API server reads of a request.
const maxBody = 3 << 20

func newStores(next func() uint64) []*store {
	core := corev1.SchemeGroupVersion
	stores := []*store{
		{resource: core.WithResource("configmaps"), kind: core.WithKind("ConfigMap"), empty: func() stored { return &corev1.ConfigMap{} }, list: func() runtime.Object { return &corev1.ConfigMapList{} }},
		{resource: core.WithResource("events"), kind: core.WithKind("Event"), empty: func() stored { return &corev1.Event{} }, list: func() runtime.Object { return &corev1.EventList{} }},
		{resource: eventsv1.SchemeGroupVersion.WithResource("events"), kind: eventsv1.SchemeGroupVersion.WithKind("Event"), empty: func() stored { return &eventsv1.Event{} }, list: func() runtime.Object { return &eventsv1.EventList{} }},
		{resource: coordinationv1.SchemeGroupVersion.WithResource("leases"), kind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), empty: func() stored { return &coordinationv1.Lease{} }, list: func() runtime.Object { return &coordinationv1.LeaseList{} }},
	}
	for _, s := range stores {
		s.next, s.objects, s.moved = next, map[types.NamespacedName]stored{}, make(chan struct{})
	}
	return stores
}

// prefix is where an API group is served.
func prefix(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// serveStore registers the paths of a store.
func (s *Server) serveStore(mux *http.ServeMux, st *store) {
	root := prefix(st.resource.GroupVersion())
	all, of := root+"/"+st.resource.Resource, root+"/namespaces/{namespace}/"+st.resource.Resource
	handle := func(method, path string, serve func(*http.Request, format) (runtime.Object, int, error)) {
		s.handle(mux, method+" "+path, st.resource.Resource, func(w http.ResponseWriter, r *http.Request, f format) error {
			obj, status, err := serve(r, f)
			if err != nil {
				return err
			}
			return s.answer(w, f, status, obj)
		})
	}
	for _, path := range []string{all, of} {
		s.handle(mux, "GET "+path, st.resource.Resource, func(w http.ResponseWriter, r *http.Request, f format) error {
			return s.serveObjects(w, r, st, f)
		})
	}
	handle("POST", of, func(r *http.Request, _ format) (runtime.Object, int, error) {
		o, err := st.read(r)
		if err != nil {
			return nil, 0, err
		}
		created, err := st.create(o)
		s.wrote(st, r, created, err)
		return created, http.StatusCreated, err
	})
	handle("GET", of+"/{name}", func(r *http.Request, _ format) (runtime.Object, int, error) {
		o, err := st.get(keyIn(r))
		return o, http.StatusOK, err
	})
	handle("PUT", of+"/{name}", func(r *http.Request, _ format) (runtime.Object, int, error) {
		o, err := st.read(r)
		if err != nil {
			return nil, 0, err
		}
		updated, err := st.update(o)
		s.wrote(st, r, updated, err)
		return updated, http.StatusOK, err
	})
	handle("DELETE", of+"/{name}", func(r *http.Request, _ format) (runtime.Object, int, error) {
		options := &metav1.DeleteOptions{}
		if err := readBody(r, options); err != nil {
			return nil, 0, err
		}
		gone, err := st.remove(keyIn(r), options.Preconditions)
		s.wrote(st, r, nil, err)
		return gone, http.StatusOK, err
	})
}

func keyIn(r *http.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}

// read decodes the object of a request.
func (st *store) read(r *http.Request) (stored, error) {
	o := st.empty()
	if err := readBody(r, o); err != nil {
		return nil, err
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(r.PathValue("namespace"))
	}
	return o, nil
}

// readBody decodes a request in either encoding, which the body says itself.
func readBody(r *http.Request, into runtime.Object) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return apierrors.NewBadRequest(err.Error())
	case len(body) > maxBody:
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	case len(body) == 0:
		return nil
	}
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// serveObjects answers a list or a watch.
func (s *Server) serveObjects(w http.ResponseWriter, r *http.Request, st *store, f format) error {
	q := query{r.URL.Query()}
	sel := selection{namespace: r.PathValue("namespace")}
	var err error
	if sel.labels, err = labels.Parse(q.Get("labelSelector")); err == nil {
		sel.fields, err = fields.ParseSelector(q.Get("fieldSelector"))
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	objects, version, log := st.snapshot(sel, s.cluster.present)
	if !q.is("watch") {
		list, err := st.newList(objects, version)
		if err != nil {
			return err
		}
		return s.answer(w, f, http.StatusOK, list)
	}
	initial := q.is("sendInitialEvents")
	if q.Has("sendInitialEvents") && s.NoWatchList {
		return forbidInitialEvents(&encoder{name: st.resource.Resource})
	}
	if from := q.Get("resourceVersion"); from != "" && from != "0" && !initial {
		v, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			return apierrors.NewBadRequest("resourceVersion: " + err.Error())
		}
		objects, log = nil, st.after(v)
	}
	out := s.openStream(w, r, f, initial)
	defer out.close()
	s.watchObjects(out, r, st, f, sel, objects, version, log, initial)
	return nil
}

// watchObjects sends the state and what changes, until the client is gone.
func (s *Server) watchObjects(out *stream, r *http.Request, st *store, f format, sel selection, state []stored, version uint64, log int, initial bool) {
	q := query{r.URL.Query()}
	send := func(e event, o stored) error {
		encoded, err := f.encode(o)
		if err != nil {
			return err
		}
		frame, err := f.frame(e, encoded)
		if err == nil {
			_, err = out.Write(frame)
		}
		return err
	}
	mark := func(version uint64, end bool) error {
		o := st.empty()
		o.GetObjectKind().SetGroupVersionKind(st.kind)
		o.SetResourceVersion(strconv.FormatUint(version, 10))
		if end {
			o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		}
		return send(bookmark, o)
	}
	for _, o := range state {
		if send(added, o) != nil {
			return
		}
	}
	if initial && mark(version, true) != nil || out.flush() != nil {
		return
	}
	timeout := time.NewTimer(q.timeout())
	defer timeout.Stop()
	tick := time.NewTicker(bookmarkPeriod)
	defer tick.Stop()
	for {
		changes, moved := st.since(log)
		log += len(changes)
		for _, ch := range changes {
			if e, ok := ch.as(sel); ok && send(e, ch.object) != nil {
				return
			}
		}
		if len(changes) > 0 && out.flush() != nil {
			return
		}
		select {
		case <-moved:
		case <-tick.C:
			if q.is("allowWatchBookmarks") && (mark(s.cluster.present(), false) != nil || out.flush() != nil) {
				return
			}
		case <-timeout.C:
			return
		case <-r.Context().Done():
			return
		case <-s.ending:
			return
		}
	}
}
