package serve

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// SessionCookie holds the token of somebody who has logged in with a browser, which
// has no other way to send one. By its prefix browsers take it over TLS only, and from
// this host alone.
const SessionCookie = "__Host-gpu-summary"

// The only paths at which a POST is answered, and only where tokens are asked for.
const (
	loginPath  = "/login"
	logoutPath = "/logout"
)

const (
	// maxForm is how long what is posted may be.
	maxForm = 16 << 10
	// maxCookie is what browsers keep at least of a cookie's name and value together,
	// and no more.
	maxCookie = 4096
	maxToken  = maxCookie - len(SessionCookie)
)

//go:embed login.css
var loginCSS string

// loginPolicy allows the form its own style, which is in it: whoever has no token gets
// no other file.
var loginPolicy = func() string {
	sum := sha256.Sum256([]byte(loginCSS))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}()

// login answers what has to do with logging in, and reports whether that is so.
func (g *gate) login(w http.ResponseWriter, r *http.Request) bool {
	if g.auth == nil || r.URL.RawPath != "" {
		return false
	}
	switch posted := r.Method == http.MethodPost; {
	case r.URL.Path == loginPath && posted:
		g.open(w, r)
	case r.URL.Path == logoutPath && posted:
		g.close(w, r)
	case r.URL.Path == loginPath && r.Method == http.MethodGet && r.ContentLength == 0:
		form(w, r, http.StatusOK, "", "/")
	default:
		return false
	}
	return true
}

// sameOrigin keeps other pages from logging somebody in as somebody else, or out.
var sameOrigin = http.NewCrossOriginProtection()

// open lets a reader in whose token is good for the page they came from.
func (g *gate) open(w http.ResponseWriter, r *http.Request) {
	if err := sameOrigin.Check(r); err != nil {
		refuse(w, http.StatusForbidden)
		return
	}
	values, status := posted(w, r)
	if status != http.StatusOK {
		refuse(w, status)
		return
	}
	next := local(values.Get("next"))
	token := strings.TrimSpace(values.Get("token"))
	switch {
	case token == "":
		form(w, r, http.StatusBadRequest, "There is no token.", next)
		return
	case !fitsCookie(token):
		form(w, r, http.StatusBadRequest, "A token has only letters, digits and -._~+/=; this has something else. Was it copied whole?", next)
		return
	case len(token) > maxToken:
		form(w, r, http.StatusBadRequest, fmt.Sprintf("This token has %d characters, and a browser keeps %d at most. "+
			"Take one with fewer claims, or send it with another client, in the header Authorization.", len(token), maxToken), next)
		return
	}
	wanted, _ := url.Parse(next) // local has read it
	if status := g.auth.Decide(r.Context(), token, right(wanted.Path)).status(); status != http.StatusOK {
		form(w, r, status, http.StatusText(status), next)
		return
	}
	http.SetCookie(w, session(token, 0))
	leave(w, next)
}

func (*gate) close(w http.ResponseWriter, r *http.Request) {
	if err := sameOrigin.Check(r); err != nil {
		refuse(w, http.StatusForbidden)
		return
	}
	if _, status := posted(w, r); status != http.StatusOK {
		refuse(w, status)
		return
	}
	http.SetCookie(w, session("", -1))
	leave(w, "/")
}

func session(token string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: SessionCookie, Value: token, MaxAge: maxAge,
		Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// posted reads a form, which is the only body that is ever read.
func posted(w http.ResponseWriter, r *http.Request) (url.Values, int) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, http.StatusUnsupportedMediaType
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	if err != nil {
		return nil, http.StatusRequestEntityTooLarge
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, http.StatusBadRequest
	}
	return values, http.StatusOK
}

// fitsCookie reports whether a text has only what RFC 6750 allows in a token. A cookie
// takes all of it as it is.
func fitsCookie(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~+/=", r)
	})
}

// local is a path of ours with its query, "/" in place of anything else.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || !strings.HasPrefix(next, "/") || !plain(u) || !visible(next) {
		return "/"
	}
	return next
}

// leave sends a browser to one of our pages. The address is relative to this one, for
// nobody here knows below which path of a proxy that is.
func leave(w http.ResponseWriter, next string) {
	w.Header().Set("Location", "."+next)
	w.WriteHeader(http.StatusSeeOther)
}

// form answers with the form to log in with. It says no more than a refusal does.
func form(w http.ResponseWriter, r *http.Request, status int, problem, next string) {
	root := strings.Repeat("../", strings.Count(r.URL.Path, "/")-1) + "./"
	var page bytes.Buffer
	_ = loginPage(root+"login", problem, next).Render(&page) // a buffer takes everything
	header := w.Header()
	if status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", "Bearer")
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		header.Set("Retry-After", "1")
	}
	header.Set("Content-Security-Policy", loginPolicy)
	header.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes())
}

// loginPage is sent to an address of ours, as it is seen from the page.
func loginPage(address, problem, next string) g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.TitleEl(g.Text("Log in · GPU summary")),
			h.Link(h.Rel("icon"), h.Href("data:,")),
			h.StyleEl(g.Raw(loginCSS)),
		),
		h.Body(h.Main(
			h.H1(g.Text("GPU summary")),
			g.If(problem != "", h.P(h.Class("problem"), h.Role("alert"), g.Text(problem))),
			h.Form(h.Method("post"), h.Action(address),
				h.Input(h.Type("hidden"), h.Name("next"), h.Value(next)),
				h.Label(h.For("token"), g.Text("Bearer token of a Kubernetes account")),
				h.Input(h.ID("token"), h.Name("token"), h.Type("password"), h.Required(), h.AutoFocus(), h.AutoComplete("off")),
				h.Button(g.Text("Log in"))),
			h.P(h.Class("hint"), g.Text("A service account has one: "), h.Code(g.Text("kubectl create token NAME")),
				g.Text(". It stays in this browser until you log out or close it.")),
		)),
	))
}

// said is what a browser shows of a refusal: nothing to those who have yet to log in.
func said(r *http.Request, status int) string {
	if status == http.StatusUnauthorized && credential(r) == "" {
		return ""
	}
	return http.StatusText(status)
}

// browses reports whether whoever asks is somebody with a browser.
func browses(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// credential is the token of a request: the one in its header or, when there is no such
// header, the one that somebody has logged in with. "" if there is none, or several.
func credential(r *http.Request) string {
	if len(r.Header.Values("Authorization")) > 0 {
		return bearer(r.Header)
	}
	cookies := r.CookiesNamed(SessionCookie)
	if len(cookies) != 1 || !fitsCookie(cookies[0].Value) {
		return ""
	}
	return cookies[0].Value
}
