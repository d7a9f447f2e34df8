package serve_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

// start serves until the test ends, and fails it if that does not go cleanly.
func start(t *testing.T, o serve.Options) (url string) {
	t.Helper()
	o.Address = "127.0.0.1:0"
	server, err := serve.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		client.CloseIdleConnections() // or the end takes the second that HTTP/2 gives its readers
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("a clean end gives %v", err)
		}
	})
	return server.URL()
}

// client trusts everybody. Tests of certificates have clients of their own.
var client = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
}}

func get(t *testing.T, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
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
	url := start(t, serve.Options{Ready: func() map[string]error { return caches }})
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

func TestLivezSaysWhatIsStuck(t *testing.T) {
	conditions := map[string]error{"lease": nil, "pass": nil}
	url := start(t, serve.Options{Live: func() map[string]error { return conditions }})
	if code, body := get(t, "GET", url+"/livez"); code != 200 || body != "[+] lease\n[+] pass\nok\n" {
		t.Errorf("%d %q", code, body)
	}
	conditions["pass"] = errors.New("too long")
	if code, body := get(t, "GET", url+"/livez"); code != 503 || body != "[+] lease\n[-] pass: too long\nnot live\n" {
		t.Errorf("%d %q", code, body)
	}
	if code, _ := get(t, "GET", url+"/readyz"); code != 200 {
		t.Errorf("/readyz: %d; it says what /livez is for", code)
	}
}

// TestProfiling is there when asked for, and read-only like all else.
func TestProfiling(t *testing.T) {
	url := start(t, serve.Options{Profiling: true})
	for _, path := range []string{"", "heap", "goroutine?debug=1", "cmdline", "symbol", "trace?seconds=0.01"} {
		if code, body := get(t, "GET", url+"/debug/pprof/"+path); code != 200 {
			t.Errorf("/debug/pprof/%s: %d %s", path, code, body)
		}
		if code, _ := get(t, "POST", url+"/debug/pprof/"+path); code != http.StatusMethodNotAllowed {
			t.Errorf("POST /debug/pprof/%s: %d", path, code)
		}
	}
}

// blocking is a collector whose scrapes take until they are released.
func blocking() (c prometheus.Collector, entered, release chan struct{}) {
	entered, release = make(chan struct{}), make(chan struct{})
	return serve.NewCollector(serve.CollectorOptions{}, func() serve.View {
		entered <- struct{}{}
		<-release
		return serve.View{}
	}), entered, release
}

// TestTooManyScrapes are refused and not piled up.
func TestTooManyScrapes(t *testing.T) {
	collector, entered, release := blocking()
	url := start(t, serve.Options{Metrics: []prometheus.Collector{collector}})
	codes := make(chan int)
	for range 3 {
		go scrape(t, url, codes)
		<-entered
	}
	if code, _ := get(t, "GET", url+"/metrics"); code != http.StatusServiceUnavailable {
		t.Errorf("one more scrape: %d", code)
	}
	close(release)
	for range 3 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a scrape that was let in: %d", code)
		}
	}
}

// TestTheEndDrains: a request that is being answered when the end comes is answered.
func TestTheEndDrains(t *testing.T) {
	collector, entered, release := blocking()
	server, err := serve.Listen(serve.Options{Address: "127.0.0.1:0", Metrics: []prometheus.Collector{collector}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	answer := make(chan int, 1)
	go scrape(t, "http://"+server.Address(), answer)
	<-entered
	cancel()
	select {
	case err := <-ended:
		t.Fatalf("the server ended (%v) with a request in hand", err)
	case <-refused(t, server.Address()):
	}
	close(release)
	if code := <-answer; code != http.StatusOK {
		t.Errorf("the request in hand: %d", code)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// scrape sends the status of the answer, 0 if there was none.
func scrape(t *testing.T, url string, answer chan<- int) {
	code := 0
	defer func() { answer <- code }()
	code, _ = get(t, "GET", url+"/metrics")
}

// refused is closed once nobody listens on the address any more.
func refused(t *testing.T, address string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for t.Context().Err() == nil {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	return done
}

func TestReadOnly(t *testing.T) {
	url := start(t, serve.Options{})
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
	url := start(t, serve.Options{})
	address := strings.TrimPrefix(url, "http://")
	if _, err := serve.Listen(serve.Options{Address: address}); err == nil || !strings.Contains(err.Error(), "--http-address "+address) {
		t.Errorf("the error does not name flag and address: %v", err)
	}
}
