// Package serve is what people and machines read: /metrics, /livez and /readyz, and
// /debug/pprof/ where it is asked for.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
}

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
	// Profiling serves /debug/pprof/.
	Profiling bool
}

// Listen binds the address, so that a port in use is known before anything else
// starts.
func Listen(o Options) (*Server, error) {
	scrape, err := metrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", scrape)
	mux.Handle("GET /livez", checks("not live", o.Live))
	mux.Handle("GET /readyz", checks("not ready", o.Ready))
	if o.Profiling {
		profile(mux)
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen on --http-address %s: %w", o.Address, err)
	}
	return &Server{listener: listener, http: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}}, nil
}

// profile adds the profiler. (net/http/pprof has added itself to
// http.DefaultServeMux already, which nobody serves.)
func profile(mux *http.ServeMux) {
	for path, handler := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc("GET /debug/pprof/"+path, func(w http.ResponseWriter, r *http.Request) {
			// ReadTimeout would end the request's context, and a long profile with it. The
			// handlers see to the other direction themselves.
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
			handler(w, r)
		})
	}
}

// Address is where the server listens, with the real port when 0 was asked for.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Run serves until ctx ends and returns when the last request has been answered
// or given up.
func (s *Server) Run(ctx context.Context) error {
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
	err := s.http.Serve(s.listener)
	if !stop() {
		<-drained
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve HTTP on %s: %w", s.Address(), err)
}
