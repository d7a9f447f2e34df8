package serve_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

// auth decides by the token, which is the name of a verdict, and remembers what it
// was asked.
type auth struct {
	mu    sync.Mutex
	asked []string
}

func (a *auth) Decide(_ context.Context, token, path string) serve.Verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, token+" "+path)
	return map[string]serve.Verdict{
		"allowed": serve.Allowed, "forbidden": serve.Forbidden, "stranger": serve.Unauthenticated, "many": serve.TooMany,
	}[token]
}

func (a *auth) questions() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.asked, ", ")
}

// guarded serves over TLS to those whom auth lets in.
func guarded(t *testing.T, o serve.Options) (url string, a *auth) {
	t.Helper()
	certificates, err := serve.SelfMadeCertificate()
	if err != nil {
		t.Fatal(err)
	}
	a = &auth{}
	o.Auth, o.TLS = a, certificates
	return start(t, o), a
}

// reply is what tests look at of an answer, whose body has been read.
type reply struct {
	StatusCode int
	Header     http.Header
	Proto      string
	Close      bool
}

// ask sends a request and returns the answer with its body.
func ask(t *testing.T, method, url string, body io.Reader, headers ...string) (reply, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, res.Proto, res.Close}, string(text)
}

// TestEachVerdictHasItsStatus, on every path that is not open, whether it exists or
// not, and nothing else is said.
func TestEachVerdictHasItsStatus(t *testing.T) {
	url, a := guarded(t, serve.Options{Profiling: true})
	for _, path := range []string{"/metrics", "/debug/pprof/cmdline", "/", "/api/nodes", "/readyz/x"} {
		for header, want := range map[string]int{
			"X: none":                         401,
			"Authorization: Bearer stranger":  401,
			"Authorization: Bearer forbidden": 403,
			"Authorization: Bearer many":      429,
			"Authorization: Bearer silence":   503,
		} {
			res, body := ask(t, "GET", url+path, nil, header)
			if res.StatusCode != want || body != http.StatusText(want)+"\n" {
				t.Errorf("%s with %s: %d %q, want %d and nothing else", path, header, res.StatusCode, body, want)
			}
			if got := res.Header.Get("WWW-Authenticate"); (got == "Bearer") != (want == 401) {
				t.Errorf("%s with %s: WWW-Authenticate %q", path, header, got)
			}
		}
	}
	if asked := a.questions(); strings.Contains(asked, "none") || strings.HasPrefix(asked, " ") {
		t.Errorf("a request without a token was asked about: %s", asked)
	}
	for path, want := range map[string]int{"/metrics": 200, "/debug/pprof/cmdline": 200, "/nowhere": 404} {
		if res, _ := ask(t, "GET", url+path, nil, "Authorization: bearer allowed"); res.StatusCode != want {
			t.Errorf("%s, allowed: %d, want %d", path, res.StatusCode, want)
		}
		if res, body := ask(t, "HEAD", url+path, nil, "Authorization: Bearer allowed"); res.StatusCode != want || body != "" {
			t.Errorf("HEAD %s, allowed: %d %q, want %d", path, res.StatusCode, body, want)
		}
	}
}

// TestOnlyOneBearerTokenIsACredential: anything else is none.
func TestOnlyOneBearerTokenIsACredential(t *testing.T) {
	url, a := guarded(t, serve.Options{})
	for name, headers := range map[string][]string{
		"other scheme": {"Authorization: Basic allowed"},
		"no scheme":    {"Authorization: allowed"},
		"nothing":      {"Authorization: Bearer "},
		"two words":    {"Authorization: Bearer allowed allowed"},
		"two headers":  {"Authorization: Bearer allowed", "Authorization: Bearer allowed"},
		"not ASCII":    {"Authorization: Bearer allowed\u00e9"},
		"elsewhere":    {"Cookie: token=allowed", "X-Remote-User: allowed", "Proxy-Authorization: Bearer allowed"},
	} {
		if res, _ := ask(t, "GET", url+"/metrics?token=allowed", nil, headers...); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
	}
	if asked := a.questions(); asked != "" {
		t.Errorf("asked about %s", asked)
	}
}

// TestProbesNeedNoToken, and learn no reasons without one.
func TestProbesNeedNoToken(t *testing.T) {
	lacking := map[string]error{"pods": errors.New("user x cannot list"), "dra": serve.Info("absent: x"), "nodes": nil}
	url, a := guarded(t, serve.Options{
		Ready: func() map[string]error { return lacking },
		Live:  func() map[string]error { return lacking },
	})
	for path, verdict := range map[string]string{"/readyz": "not ready", "/livez": "not live"} {
		short := "[i] dra: reason withheld\n[+] nodes\n[-] pods: reason withheld\n" + verdict + "\n"
		long := "[i] dra: absent: x\n[+] nodes\n[-] pods: user x cannot list\n" + verdict + "\n"
		if res, body := ask(t, "GET", url+path, nil); res.StatusCode != http.StatusServiceUnavailable || body != short {
			t.Errorf("%s: %d %q", path, res.StatusCode, body)
		}
		if asked := a.questions(); asked != "" {
			t.Fatalf("a probe had to wait for an answer to %s", asked)
		}
		for token, want := range map[string]string{"forbidden": short, "stranger": short, "silence": short, "allowed": long} {
			if res, body := ask(t, "GET", url+path, nil, "Authorization: Bearer "+token); res.StatusCode != http.StatusServiceUnavailable || body != want {
				t.Errorf("%s, %s: %d %q", path, token, res.StatusCode, body)
			}
		}
		a.asked = nil
	}
}

// TestAPathHasOneSpelling: whoever may read one path must not reach another by
// writing it in a way that is understood differently.
func TestAPathHasOneSpelling(t *testing.T) {
	url, a := guarded(t, serve.Options{})
	for _, path := range []string{
		"//", "//metrics", "/metrics//", "/./metrics", "/x/../metrics", "/x/%2e%2e/metrics", "/%2e/metrics", "/x/..", "/x%2Fmetrics", "/%6detrics", "/livez/../metrics", "/livez/%2e%2e/metrics",
	} {
		if res, _ := ask(t, "GET", url+path, nil, "Authorization: Bearer allowed"); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	if asked := a.questions(); asked != "" {
		t.Errorf("asked about %s", asked)
	}
	ask(t, "GET", url+"/a/b/?x=/../y", nil, "Authorization: Bearer allowed")
	if asked := a.questions(); asked != "allowed /gpu-summary/a/b/" {
		t.Errorf("asked about %q", asked)
	}
}

// TestTheRightsAreOurOwn: what everybody may get of the API server, by the roles each
// cluster comes with, is no right to what we serve under the same path.
func TestTheRightsAreOurOwn(t *testing.T) {
	url, a := guarded(t, serve.Options{})
	for path, want := range map[string]string{
		"/metrics": "/metrics", "/debug/pprof/heap": "/debug/pprof/heap", "/debug/pprof/": "/debug/pprof/",
		"/": "/gpu-summary/", "/api": "/gpu-summary/api", "/api/v1/nodes": "/gpu-summary/api/v1/nodes", "/version": "/gpu-summary/version",
		"/readyz": "/gpu-summary/readyz", "/livez": "/gpu-summary/livez", "/metrics/slis": "/gpu-summary/metrics/slis", "/debug/pprof": "/gpu-summary/debug/pprof",
	} {
		a.asked = nil
		ask(t, "GET", url+path, nil, "Authorization: Bearer allowed")
		if asked := a.questions(); asked != "allowed "+want {
			t.Errorf("%s: asked about %q, want %s", path, asked, want)
		}
	}
}

// TestEverythingIsReadOnly, before anybody is asked who it is.
func TestEverythingIsReadOnly(t *testing.T) {
	url, a := guarded(t, serve.Options{Profiling: true})
	for _, path := range []string{"/metrics", "/livez", "/readyz", "/debug/pprof/symbol", "/", "/nowhere"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			res, _ := ask(t, method, url+path, nil, "Authorization: Bearer allowed")
			if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, path, res.StatusCode, res.Header.Get("Allow"))
			}
		}
		for kind, body := range map[string]io.Reader{"a body": strings.NewReader("x"), "a stream": io.MultiReader(strings.NewReader("x"))} {
			if res, _ := ask(t, "GET", url+path, body, "Authorization: Bearer allowed"); res.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("GET %s with %s: %d", path, kind, res.StatusCode)
			}
		}
	}
	if asked := a.questions(); asked != "" {
		t.Errorf("asked about %s", asked)
	}
}

// TestABodyIsNotRead: over HTTP/1.1 the connection ends instead.
func TestABodyIsNotRead(t *testing.T) {
	res, _ := ask(t, "GET", start(t, serve.Options{})+"/livez", strings.NewReader("x"))
	if res.StatusCode != http.StatusRequestEntityTooLarge || !res.Close {
		t.Errorf("%d, and the connection is closed: %t", res.StatusCode, res.Close)
	}
}
