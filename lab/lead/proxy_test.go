package lead_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// proxy stands between one replica and the API server. It can hold what is about
// leases, on the way there or on the way back, and lets everything else pass.
type proxy struct {
	url string

	mu          sync.Mutex
	there, back chan struct{} // closed when messages may pass; nil is no stall
	puts        int           // PUTs whose reply went to the client
}

func startProxy(t *testing.T) *proxy {
	t.Helper()
	config := lab.Config()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	reverse := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		// A client that gives up is what these tests are about.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		ModifyResponse: func(res *http.Response) error {
			if !aboutLeases(res.Request) {
				return nil
			}
			err := pass(res.Request, p.stalled(false))
			if err == nil && res.Request.Method == http.MethodPut && res.StatusCode == http.StatusOK {
				p.mu.Lock()
				p.puts++
				p.mu.Unlock()
			}
			return err
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if aboutLeases(r) && pass(r, p.stalled(true)) != nil {
			return
		}
		reverse.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.heal()
		server.CloseClientConnections()
		server.Close()
	})
	p.url = server.URL
	return p
}

func aboutLeases(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases") }

// pass waits until the stall ends or the client has given up.
func pass(r *http.Request, stall <-chan struct{}) error {
	if stall == nil {
		return nil
	}
	select {
	case <-stall:
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

func (p *proxy) stalled(there bool) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if there {
		return p.there
	}
	return p.back
}

// stall holds requests, holdReplies what they are answered.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.there = make(chan struct{})
}

func (p *proxy) holdReplies() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.back = make(chan struct{})
}

// loseReplies ends holdReplies for what comes from now on. What is held stays so.
func (p *proxy) loseReplies() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.back = nil
}

func (p *proxy) answered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.puts
}

// heal lets everything pass, what was held as well.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []*chan struct{}{&p.there, &p.back} {
		if *c != nil {
			close(*c)
			*c = nil
		}
	}
}
