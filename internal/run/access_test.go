package run

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/preflight"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

// TestReadersAreAskedForTokens wherever others can reach the address, unless somebody
// says otherwise. Where they are, there is TLS, and the controller needs to ask.
func TestReadersAreAskedForTokens(t *testing.T) {
	for _, tc := range []struct {
		address, auth string
		want          bool
	}{
		{"127.0.0.1:8080", "", false},
		{"[::1]:8080", "", false},
		{"localhost:0", "", false},
		{":8080", "", true},
		{"0.0.0.0:8080", "", true},
		{"[::]:8080", "", true},
		{"10.0.0.1:8080", "", true},
		{"localhost.example.com:8080", "", true},
		{":8080", "none", false},
		{"127.0.0.1:8080", "kubernetes", true},
	} {
		o := DefaultOptions()
		o.HTTPAddress, o.HTTPAuth = tc.address, tc.auth
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", tc, err)
		}
		var s serve.Options
		if err := o.guard(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, &s); err != nil {
			t.Fatal(err)
		}
		if (s.Auth != nil) != tc.want || (s.TLS != nil) != tc.want {
			t.Errorf("%+v: asked for tokens: %t, over TLS: %t", tc, s.Auth != nil, s.TLS != nil)
		}
		asks := slices.ContainsFunc(o.needs(), func(n preflight.Need) bool { return n.Resource == "tokenreviews" })
		if asks != tc.want {
			t.Errorf("%+v: the right to ask is needed: %t", tc, asks)
		}
	}
}

// TestFlagsAboutReaders that cannot work are named.
func TestFlagsAboutReaders(t *testing.T) {
	for flag, change := range map[string]func(*Options){
		"http-auth":            func(o *Options) { o.HTTPAuth = "token" },
		"http-auth-audience":   func(o *Options) { o.HTTPAudiences = []string{"a"} },
		"tls-cert-file":        func(o *Options) { o.TLSCertFile = "a" },
		"tls-private-key-file": func(o *Options) { o.TLSKeyFile = "a" },
	} {
		o := DefaultOptions()
		change(o)
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), "--"+flag+"=") {
			t.Errorf("%s: %v", flag, err)
		}
	}
	o := DefaultOptions()
	o.TLSCertFile, o.TLSKeyFile = "none.crt", "none.key"
	if err := o.guard(t.Context(), &rest.Config{}, &serve.Options{}); err == nil || !strings.Contains(err.Error(), "none.crt") {
		t.Errorf("files that are not there: %v", err)
	}
}
