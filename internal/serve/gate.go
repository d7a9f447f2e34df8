package serve

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// Auth decides who may read what is served. /livez and /readyz are for everybody,
// but their reasons are not.
type Auth interface {
	// Decide is given a token, never an empty one, and the path that its owner must
	// have the right to get. It is called from many goroutines at a time.
	Decide(ctx context.Context, token, path string) Verdict
}

// Verdict is a decision. The zero value lets nobody in.
type Verdict int

// The verdicts. Readers are told which it is, and nothing else.
const (
	Unknown         Verdict = iota // who could tell does not answer
	Unauthenticated                // nobody we know
	Forbidden                      // somebody who may not
	TooMany                        // too many strangers at a time
	Allowed
)

func (v Verdict) status() int {
	switch v {
	case Allowed:
		return http.StatusOK
	case Unauthenticated:
		return http.StatusUnauthorized
	case Forbidden:
		return http.StatusForbidden
	case TooMany:
		return http.StatusTooManyRequests
	default:
		return http.StatusServiceUnavailable
	}
}

// maxRequests is how many are answered at a time, beside those to the open paths: a
// crowd of readers must not keep the kubelet from its probes.
const maxRequests = 16

// gate is what a request has to pass before it is answered.
type gate struct {
	next http.Handler
	auth Auth // nil lets everybody in
	// local is set when the server is meant for this machine alone, where there is no
	// token to ask for.
	local bool
	// insist makes browsers use TLS from now on.
	insist bool
	room   chan struct{}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.head(w.Header())
	if g.login(w, r) {
		return
	}
	if status := g.formal(r); status != http.StatusOK {
		refuse(w, status)
		return
	}
	if r.URL.Path == livez || r.URL.Path == readyz {
		g.next.ServeHTTP(w, r)
		return
	}
	if status := verdict(g.auth, r).status(); status != http.StatusOK {
		if g.auth != nil && browses(r) {
			form(w, r, status, said(r, status), r.URL.RequestURI())
			return
		}
		refuse(w, status)
		return
	}
	select {
	case g.room <- struct{}{}:
		defer func() { <-g.room }()
		g.next.ServeHTTP(w, r)
	default:
		refuse(w, http.StatusServiceUnavailable)
	}
}

// head sets what every answer has in its head. A handler may replace it; a page needs
// another policy than numbers do.
func (g *gate) head(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	if g.insist {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// formal judges a request by its form alone: 200, or the status to refuse it with.
func (g *gate) formal(r *http.Request) int {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed
	case r.ContentLength != 0: // nothing here reads a body; -1 is one of unknown length
		return http.StatusRequestEntityTooLarge
	case g.local && !meansThisMachine(r.Host):
		return http.StatusMisdirectedRequest
	case !plain(r.URL):
		return http.StatusNotFound
	}
	return http.StatusOK
}

// plain reports whether a path is written in the one way that is accepted. The API
// server is asked about the path, and another spelling of it must not be served as
// something else: neither /api/../metrics nor /api%2Fnodes.
func plain(u *url.URL) bool {
	clean := path.Clean(u.Path)
	if strings.HasSuffix(u.Path, "/") && clean != "/" {
		clean += "/"
	}
	return u.RawPath == "" && u.Path == clean
}

// meansThisMachine reports whether a Host header is an address or localhost. Any
// other name may be one that somebody lets point here, so that a browser on this
// machine hands our answers to their page.
func meansThisMachine(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	if _, err := netip.ParseAddr(name); err == nil || host == "" {
		return true
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// verdict decides about a request. One without a token is cheap, so nothing limits
// how many there are.
func verdict(auth Auth, r *http.Request) Verdict {
	if auth == nil {
		return Allowed
	}
	token := credential(r)
	if token == "" {
		return Unauthenticated
	}
	return auth.Decide(r.Context(), token, right(r.URL.Path))
}

// right is the path that readers need the right to get. In every cluster all who are
// known may get the API server's own /api, /version and /readyz (system:discovery), and
// that must not mean ours. So only what goes by the same name everywhere keeps it.
func right(path string) string {
	if path == "/metrics" || strings.HasPrefix(path, profiles) {
		return path
	}
	return "/gpu-summary" + path
}

// bearer is the token of a request, "" if there is none or more than one.
func bearer(h http.Header) string {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || !visible(token) {
		return ""
	}
	return token
}

// visible reports whether a text has only visible ASCII, as tokens and the names in
// certificates have.
func visible(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// refuse answers with a status and its name. Whoever is refused learns nothing else.
func refuse(w http.ResponseWriter, status int) {
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", "GET, HEAD")
	case http.StatusRequestEntityTooLarge:
		w.Header().Set("Connection", "close") // else the body would be read, to find the next request
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(http.StatusText(status) + "\n"))
}
