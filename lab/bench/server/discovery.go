package server

import (
	"encoding/json"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// serveDiscovery registers what the server says of itself. Groups that are not
// named here are not served and answer 404, resource.k8s.io among them.
func (s *Server) serveDiscovery(mux *http.ServeMux) {
	reply := func(path string, v any) {
		s.handle(mux, "GET "+path, "discovery", func(w http.ResponseWriter, _ *http.Request, _ format) error {
			w.Header().Set("Content-Type", mediaJSON)
			return json.NewEncoder(w).Encode(v)
		})
	}
	reply("/version", version.Info{Major: "1", Minor: "37", GitVersion: Version, Platform: "linux/amd64"})
	reply("/api", metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}})

	resources := map[schema.GroupVersion][]metav1.APIResource{
		{Version: "v1"}: {
			{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}},
			{Name: "nodes", Kind: "Node", Verbs: metav1.Verbs{"list", "watch"}},
		},
		authorizationv1.SchemeGroupVersion: {{Name: "selfsubjectaccessreviews", Kind: "SelfSubjectAccessReview", Verbs: metav1.Verbs{"create"}}},
	}
	for _, st := range s.stores {
		gv := st.resource.GroupVersion()
		resources[gv] = append(resources[gv], metav1.APIResource{
			Name: st.resource.Resource, Kind: st.kind.Kind, Namespaced: true, Verbs: metav1.Verbs{"create", "delete", "get", "list", "update", "watch"},
		})
	}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for gv, list := range resources {
		reply(prefix(gv), metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(), APIResources: list})
		if gv.Group != "" {
			v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		}
	}
	reply("/apis", groups)
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		s.handle(mux, "GET "+path, "health", func(w http.ResponseWriter, _ *http.Request, _ format) error {
			_, err := w.Write([]byte("ok"))
			return err
		})
	}
	s.handle(mux, "POST "+prefix(authorizationv1.SchemeGroupVersion)+"/selfsubjectaccessreviews", "selfsubjectaccessreviews",
		func(w http.ResponseWriter, r *http.Request, f format) error {
			review := &authorizationv1.SelfSubjectAccessReview{}
			if err := readBody(r, review); err != nil {
				return err
			}
			review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "everything is allowed here"}
			review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
			return s.answer(w, f, http.StatusCreated, runtime.Object(review))
		})
}
