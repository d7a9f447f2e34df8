package serve_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

// TestHeaders are on every answer, refusals too.
func TestHeaders(t *testing.T) {
	url, _ := guarded(t, serve.Options{})
	open := start(t, serve.Options{})
	want := map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"Cache-Control":                "no-store",
		"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy":              "no-referrer",
		// Neither without TLS nor with a certificate that nobody trusts.
		"Strict-Transport-Security":   "",
		"Access-Control-Allow-Origin": "",
	}
	for _, path := range []string{url + "/metrics", url + "/readyz", url + "/x//", open + "/metrics", open + "/livez", open + "/nowhere"} {
		res, _ := ask(t, "GET", path, nil, "Origin: https://example.com")
		for name, value := range want {
			if got := res.Header.Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", path, name, got, value)
			}
		}
	}
}

// TestNoOtherNameOnLoopback: a page from elsewhere whose name somebody points here
// must not read what is open to this machine. Where tokens are asked for it cannot.
func TestNoOtherNameOnLoopback(t *testing.T) {
	open := start(t, serve.Options{})
	url, _ := guarded(t, serve.Options{})
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "localhost": 200, "localhost:8080": 200, "gpu.localhost:80": 200,
		"example.com": 421, "example.com:8080": 421, "localhost.example.com": 421, "127.0.0.1.example.com": 421, "notlocalhost": 421,
	} {
		for _, path := range []string{"/metrics", "/readyz"} {
			if res, _ := ask(t, "GET", open+path, nil, "Host: "+host); res.StatusCode != want {
				t.Errorf("%s as %s: %d, want %d", path, host, res.StatusCode, want)
			}
		}
		if res, _ := ask(t, "GET", url+"/metrics", nil, "Host: "+host, "Authorization: Bearer allowed"); res.StatusCode != http.StatusOK {
			t.Errorf("with a token as %s: %d", host, res.StatusCode)
		}
	}
}

// TestNoTokenInTheClear: there is no way to ask for tokens without TLS.
func TestNoTokenInTheClear(t *testing.T) {
	if _, err := serve.Listen(serve.Options{Address: "127.0.0.1:0", Auth: &auth{}}); err == nil {
		t.Error("tokens are asked for over plain HTTP")
	}
	url, _ := guarded(t, serve.Options{})
	if !strings.HasPrefix(url, "https://") {
		t.Error(url)
	}
	res, body := ask(t, "GET", strings.Replace(url, "https", "http", 1)+"/livez", nil)
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP: %d %s", res.StatusCode, body)
	}
}

// TestTLS is of a version that is not broken, and does HTTP/2.
func TestTLS(t *testing.T) {
	url, _ := guarded(t, serve.Options{})
	address := strings.TrimPrefix(url, "https://")
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: version})
		if (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	if res, _ := ask(t, "GET", url+"/livez", nil); res.Proto != "HTTP/2.0" {
		t.Errorf("served over %s", res.Proto)
	}
}
