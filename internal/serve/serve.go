// Package serve is what people and machines read: /metrics, /livez and /readyz.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // workqueue_*, rest_client_* and informer_* metrics
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

// Listen binds the address, so that a port in use is known before anything else
// starts. synced tells for each cache by name what it still lacks, nil for
// nothing.
func Listen(address string, synced func() map[string]error) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on --http-address %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", legacyregistry.Handler())
	mux.Handle("GET /livez", checks(nil))
	mux.Handle("GET /readyz", checks(synced))
	return &Server{listener: listener, http: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}}, nil
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
