// Package serve is what people and machines read: /metrics, /livez and /readyz, and
// /debug/pprof/ where it is asked for. docs/access.md says who may.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
)

// The paths that are open to all: the kubelet has no token.
const (
	livez  = "/livez"
	readyz = "/readyz"
)

const profiles = "/debug/pprof/"

// Limits that keep a slow or hostile reader from holding resources.
const (
	headerTimeout   = 5 * time.Second
	requestTimeout  = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 16 << 10
	shutdownTimeout = 5 * time.Second
)

// Server answers read-only HTTP requests.
type Server struct {
	listener net.Listener
	http     *http.Server
	tls      bool // http.Server adds a TLSConfig of its own, also without TLS
}

var errClear = errors.New("readers would send their tokens in the clear: Auth takes TLS")

// Options says what is served, and where.
type Options struct {
	// Address is host:port, port 0 for any that is free.
	Address string
	// Ready tells for each cache by name what it still lacks, nil for nothing; an
	// Info keeps nobody from being ready. Without it the server is.
	Ready func() map[string]error
	// Live tells by name what can only be cured by a restart. It must not fail for
	// anything else: an API server in trouble is not helped by controllers that start
	// over.
	Live func() map[string]error
	// Metrics are served beside those of client-go and the Go runtime.
	Metrics []prometheus.Collector
	// Handlers answer further paths, each key one pattern of http.ServeMux without a
	// method: GET and HEAD are all there is.
	Handlers map[string]http.Handler
	// Profiling serves /debug/pprof/.
	Profiling bool
	// Auth decides who may read. Without it everybody may who can reach the address.
	Auth Auth
	// TLS is where certificates come from; without it there is plain HTTP.
	TLS *Certificates
}

// Listen binds the address, so that a port in use is known before anything else
// starts.
func Listen(o Options) (*Server, error) {
	if o.Auth != nil && o.TLS == nil {
		return nil, errClear
	}
	scrape, err := metrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", scrape)
	told := func(r *http.Request) bool { return verdict(o.Auth, r) == Allowed }
	mux.Handle("GET "+livez, checks("not live", o.Live, told))
	mux.Handle("GET "+readyz, checks("not ready", o.Ready, told))
	for pattern, handler := range o.Handlers {
		mux.Handle("GET "+pattern, handler)
	}
	if o.Profiling {
		profile(mux)
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen on --http-address %s: %w", o.Address, err)
	}
	server := &http.Server{
		Handler: &gate{
			next: mux, auth: o.Auth, room: make(chan struct{}, maxRequests),
			local: o.Auth == nil && listener.Addr().(*net.TCPAddr).IP.IsLoopback(),
			// Nobody can use a name again that a self-made certificate was insisted on for.
			insist: o.TLS != nil && o.TLS.given,
		},
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxRequests},
	}
	if o.TLS != nil {
		server.TLSConfig = o.TLS.config()
	}
	return &Server{listener: listener, http: server, tls: o.TLS != nil}, nil
}

// profile adds the profiler. (net/http/pprof has added itself to
// http.DefaultServeMux already, which nobody serves.)
func profile(mux *http.ServeMux) {
	for path, handler := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc("GET "+profiles+path, func(w http.ResponseWriter, r *http.Request) {
			// ReadTimeout would end the request's context, and a long profile with it. The
			// handlers see to the other direction themselves.
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
			handler(w, r)
		})
	}
}

// Address is where the server listens, with the real port when 0 was asked for.
func (s *Server) Address() string { return s.listener.Addr().String() }

// URL is the same with the scheme that readers have to use.
func (s *Server) URL() string {
	if s.tls {
		return "https://" + s.Address()
	}
	return "http://" + s.Address()
}

// Run serves until ctx ends and returns when the last request has been answered
// or given up.
func (s *Server) Run(ctx context.Context) error {
	// Requests have its logger, and their own end.
	s.http.BaseContext = func(net.Listener) context.Context { return context.WithoutCancel(ctx) }
	s.http.ErrorLog = log.New(complaints{klog.FromContext(ctx)}, "", 0)
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		// The requests in flight may outlive ctx, but not for long.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if s.http.Shutdown(bounded) != nil {
			_ = s.http.Close()
		}
	})
	err := s.serve()
	if !stop() {
		<-drained
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve HTTP on %s: %w", s.Address(), err)
}

func (s *Server) serve() error {
	if s.tls {
		return s.http.ServeTLS(s.listener, "", "")
	}
	return s.http.Serve(s.listener)
}

// complaints are what net/http has to say. Anybody can cause handshakes that fail, as
// many as they like, so those are for -v=4.
type complaints struct{ logger klog.Logger }

func (c complaints) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.HasPrefix(text, "http: TLS handshake error") {
		c.logger.V(4).Info("HTTP server", "message", text)
	} else {
		c.logger.Error(nil, "HTTP server", "message", text)
	}
	return len(line), nil
}
