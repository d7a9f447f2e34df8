package server

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// gzipLevel and gzipFrom are those of the real server: the fastest, for answers of
	// at least so many bytes.
	gzipLevel = gzip.BestSpeed
	gzipFrom  = 128 << 10

	headerTimeout = 10 * time.Second
	drainTimeout  = 2 * time.Second
	// keptStates is how many lists may be under way in pages.
	keptStates = 16
)

// Options say what is served, and how.
type Options struct {
	Size
	// TLS serves HTTPS, and with it HTTP/2, with a certificate made for the occasion.
	TLS bool
	// Gzip compresses for those who accept it.
	Gzip bool
	// JSONOnly does not speak protobuf.
	JSONOnly bool
	// NoWatchList refuses to begin a watch with the present state, as old servers do.
	NoWatchList bool
	// Summary is the name of the ConfigMap that the clients under test publish.
	Summary string
}

// Server serves one cluster.
type Server struct {
	Options
	cluster  *Cluster
	pods     *encoder
	nodes    *encoder
	stores   []*store
	counts   *counts
	listener net.Listener
	http     *http.Server
	// certificate is the server's own, as PEM; nil without TLS.
	certificate []byte
	ending      chan struct{}
	now         func() time.Time

	mu     sync.Mutex
	states map[listKey]view // of lists that are under way
}

// Listen prepares a server and binds its address. It serves nothing yet.
func Listen(address string, o Options) (*Server, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := &Server{Options: o, cluster: newCluster(o.Size), ending: make(chan struct{}), now: time.Now, states: map[listKey]view{}}
	s.counts = newCounts(o.Summary, s.cluster.Expected)
	s.stores = newStores(s.cluster.next)
	var err error
	if s.pods, err = newPods(); err != nil {
		return nil, err
	}
	if s.nodes, err = newNodes(); err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.listener = countedListener{s.listener, s.counts}
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: headerTimeout}
	if !o.TLS {
		return s, nil
	}
	pair, certificate, err := selfSigned()
	if err != nil {
		return nil, errors.Join(err, s.listener.Close())
	}
	s.certificate = certificate
	s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return s, nil
}

// URL is where the server is.
func (s *Server) URL() string {
	if s.TLS {
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// Certificate is what a client has to trust, as PEM; nil without TLS.
func (s *Server) Certificate() []byte { return s.certificate }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		close(s.ending)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if s.http.Shutdown(bounded) != nil {
			_ = s.http.Close()
		}
	})
	defer stop()
	serve := func() error { return s.http.Serve(s.listener) }
	if s.TLS {
		serve = func() error { return s.http.ServeTLS(s.listener, "", "") }
	}
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, e := range []*encoder{s.pods, s.nodes} {
		s.handle(mux, "GET /api/v1/"+e.name, e.name, func(w http.ResponseWriter, r *http.Request, f format) error {
			if (query{r.URL.Query()}).is("watch") {
				return s.serveWatch(w, r, e, f)
			}
			return s.serveList(w, r, e, f)
		})
	}
	for _, st := range s.stores {
		s.serveStore(mux, st)
	}
	s.serveDiscovery(mux)
	s.handle(mux, "/", "other", func(http.ResponseWriter, *http.Request, format) error {
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, true)
	})
	return mux
}

// handle registers a path of the API: it chooses the encoding, counts, and turns
// errors into answers.
func (s *Server) handle(mux *http.ServeMux, pattern, resource string, serve func(http.ResponseWriter, *http.Request, format) error) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		cw, done := s.counts.begin(w, r, resource)
		defer done()
		f, err := s.negotiate(r)
		if err == nil {
			err = serve(cw, r, f)
		}
		if err != nil {
			s.fail(cw, f, err)
		}
	})
}

// negotiate chooses the first encoding that the client names and the server has.
func (s *Server) negotiate(r *http.Request) (format, error) {
	accept := r.Header.Get("Accept")
	if accept == "" {
		return asJSON, nil
	}
	for choice := range strings.SplitSeq(accept, ",") {
		media, parameters, _ := strings.Cut(strings.TrimSpace(choice), ";")
		switch {
		case strings.Contains(parameters, "as="):
			// Tables and the like are for people.
		case media == mediaProtobuf && !s.JSONOnly:
			return asProtobuf, nil
		case media == mediaJSON, media == "*/*", media == "application/*":
			return asJSON, nil
		}
	}
	return asJSON, apierrors.NewGenericServerResponse(http.StatusNotAcceptable, r.Method, schema.GroupResource{}, "", "only the following media types are accepted: "+mediaJSON, 0, false)
}

func (s *Server) acceptsGzip(r *http.Request) bool {
	return s.Gzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}

// answer writes an object.
func (s *Server) answer(w http.ResponseWriter, f format, status int, obj runtime.Object) error {
	body, err := f.encode(obj)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", f.mediaType())
	w.WriteHeader(status)
	_, _ = w.Write(body)
	return nil
}

// fail answers with a Status.
func (s *Server) fail(w http.ResponseWriter, f format, err error) {
	status := apierrors.NewInternalError(err).Status()
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if err := s.answer(w, f, int(status.Code), &status); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
