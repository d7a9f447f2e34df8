package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Paths of the harness.
const (
	PathState = "/bench/state"
	PathRight = "/bench/right"
	PathChurn = "/bench/churn"
)

type harnessKey struct{}

// isHarness is whether a request came over the harness's listener.
func isHarness(ctx context.Context) bool { return ctx.Value(harnessKey{}) != nil }

// Control serves the harness: the paths above, and the whole API, uncounted. It
// returns when ctx ends.
func (s *Server) Control(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("/", s.http.Handler)
	mux.HandleFunc("GET "+PathState, func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.URL.Query().Get("from"))
		state := s.counts.state(from)
		state.Version = s.cluster.present()
		reply(w, state)
	})
	mux.HandleFunc("GET "+PathRight, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.counts.turned:
			reply(w, s.counts.state(0))
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST "+PathChurn, func(w http.ResponseWriter, r *http.Request) {
		var order Churn
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		events, err := s.cluster.churn(r.Context(), order)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		reply(w, events)
	})
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout,
		BaseContext: func(net.Listener) context.Context { return context.WithValue(ctx, harnessKey{}, true) },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the harness: %w", err)
	}
	return nil
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", mediaJSON)
	_ = json.NewEncoder(w).Encode(v) // fails when the harness is gone
}

// Started is what a server process says on its output when it serves.
type Started struct {
	URL     string    `json:"url"`
	Control string    `json:"control"`
	CA      string    `json:"ca,omitempty"` // PEM
	At      time.Time `json:"at"`
}
