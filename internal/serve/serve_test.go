package serve_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

// start serves until the test ends, and fails it if that does not go cleanly.
func start(t *testing.T, synced func() map[string]error) (url string) {
	t.Helper()
	server, err := serve.Listen("127.0.0.1:0", synced)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("a clean end gives %v", err)
		}
	})
	return "http://" + server.Address()
}

func get(t *testing.T, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestReadyzNamesEachCache(t *testing.T) {
	caches := map[string]error{"pods": nil, "nodes": errors.New("forbidden")}
	url := start(t, func() map[string]error { return caches })
	if code, body := get(t, "GET", url+"/readyz"); code != 503 || body != "[-] nodes: forbidden\n[+] pods\nnot ready\n" {
		t.Errorf("%d %q", code, body)
	}
	if code, _ := get(t, "GET", url+"/livez"); code != 200 {
		t.Errorf("a cache that is not synced makes /livez %d; a restart would not help", code)
	}
	caches["nodes"], caches["dra"] = nil, serve.Info("absent: not served")
	if code, body := get(t, "GET", url+"/readyz"); code != 200 || body != "[i] dra: absent: not served\n[+] nodes\n[+] pods\nok\n" {
		t.Errorf("%d %q", code, body)
	}
}

func TestReadOnly(t *testing.T) {
	url := start(t, func() map[string]error { return nil })
	for _, path := range []string{"/metrics", "/livez", "/readyz"} {
		if code, _ := get(t, "POST", url+path); code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, code)
		}
	}
	if code, _ := get(t, "GET", url+"/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("/debug/pprof/: %d", code)
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	url := start(t, nil)
	address := strings.TrimPrefix(url, "http://")
	if _, err := serve.Listen(address, nil); err == nil || !strings.Contains(err.Error(), "--http-address "+address) {
		t.Errorf("the error does not name flag and address: %v", err)
	}
}
