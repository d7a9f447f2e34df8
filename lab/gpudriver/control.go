package gpudriver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// commandTimeout bounds a command, which may have to wait for servers to end.
const commandTimeout = 30 * time.Second

// Status is what a driver does and has.
type Status struct {
	Node    string   `json:"node"`
	Mode    Mode     `json:"mode"`
	Present bool     `json:"present"` // false after Vanish
	Devices []Device `json:"devices"`
}

// command is the body of a request on the control socket.
type command struct {
	Device  string `json:"device,omitempty"`
	Healthy bool   `json:"healthy,omitempty"`
	Mode    Mode   `json:"mode,omitempty"`
}

// ServeControl takes commands on a unix socket until ctx ends. Who can open the
// socket can do everything.
func (d *Driver) ServeControl(ctx context.Context, socket string) error {
	listener, err := listen(socket)
	if err != nil {
		return fmt.Errorf("take commands: %w", err)
	}
	server := &http.Server{Handler: d.handler(), ReadHeaderTimeout: commandTimeout}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("take commands: %w", err)
	}
	return nil
}

func (d *Driver) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		now, err := d.state(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(Status{Node: d.options.Node, Mode: now.Mode, Present: now.Present, Devices: d.Devices()})
	})
	for name, run := range map[string]func(context.Context, command) error{
		"health":  func(_ context.Context, c command) error { return d.SetHealthy(c.Device, c.Healthy) },
		"restart": func(ctx context.Context, _ command) error { return d.Restart(ctx) },
		"vanish":  func(ctx context.Context, _ command) error { return d.Vanish(ctx) },
		"return":  func(ctx context.Context, _ command) error { return d.Return(ctx) },
		"use":     func(ctx context.Context, c command) error { return d.Use(ctx, c.Mode) },
	} {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			var c command
			err := json.NewDecoder(r.Body).Decode(&c)
			if err == nil {
				err = run(r.Context(), c)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
	}
	return mux
}

// Control commands a driver of another process by its control socket. Its methods
// are those of [Driver].
type Control struct{ Socket string }

// SetHealthy says how a device is.
func (c Control) SetHealthy(ctx context.Context, device string, healthy bool) error {
	return c.do(ctx, http.MethodPost, "health", command{Device: device, Healthy: healthy}, nil)
}

// Restart ends the driver and starts it anew.
func (c Control) Restart(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "restart", command{}, nil)
}

// Vanish takes the driver away.
func (c Control) Vanish(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "vanish", command{}, nil)
}

// Return brings it back.
func (c Control) Return(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "return", command{}, nil)
}

// Use offers the devices in another way.
func (c Control) Use(ctx context.Context, m Mode) error {
	return c.do(ctx, http.MethodPost, "use", command{Mode: m}, nil)
}

// Status asks what the driver does and has.
func (c Control) Status(ctx context.Context) (s Status, err error) {
	return s, c.do(ctx, http.MethodGet, "status", command{}, &s)
}

// do makes one request, and reads the answer into out unless that is nil.
func (c Control) do(ctx context.Context, method, path string, body command, out any) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode command: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://gpudriver/"+path, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.Socket)
	}}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask the GPU driver at %s: %w", c.Socket, err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return fmt.Errorf("read the GPU driver's answer: %w", err)
		}
		return errors.New(strings.TrimSpace(string(text)))
	case out != nil:
		if err := json.NewDecoder(response.Body).Decode(out); err != nil {
			return fmt.Errorf("read the GPU driver's answer: %w", err)
		}
	}
	return nil
}
