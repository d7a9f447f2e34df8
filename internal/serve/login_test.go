package serve_test

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

const browser = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"

// post sends a form as a browser does, and does not follow where it is sent.
func post(t *testing.T, address string, form url.Values, headers ...string) (reply, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	once := *client
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := once.Do(req)
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

var formAction = regexp.MustCompile(`<form method="post" action="([^"]*)">\s*<input type="hidden" name="next" value="([^"]*)">`)

// TestBrowsersAreAskedForAToken, at each path, and others are refused as ever.
func TestBrowsersAreAskedForAToken(t *testing.T) {
	address, _ := guarded(t, serve.Options{})
	for path, want := range map[string][2]string{
		"/": {"./login", "/"}, "/nodes?state=Free": {"./login", "/nodes?state=Free"}, "/api/v1/nodes": {".././../", ""}, "/nowhere/": {"../", ""},
	} {
		res, body := ask(t, "GET", address+path, nil, browser)
		got := formAction.FindStringSubmatch(body)
		if res.StatusCode != http.StatusUnauthorized || got == nil || res.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Fatalf("%s: %d, %q", path, res.StatusCode, body)
		}
		// A browser that is at the path must come to /login, whatever it is below.
		base, _ := url.Parse("https://host/below/this" + path)
		if to, err := base.Parse(got[1]); err != nil || to.Path != "/below/this/login" {
			t.Errorf("%s: the form is sent to %v, %v", path, to, err)
		}
		if want[1] != "" && got[2] != want[1] {
			t.Errorf("%s: next is %q", path, got[2])
		}
		if strings.Contains(body, `role="alert"`) {
			t.Errorf("%s: somebody who has done nothing is told off", path)
		}
		if res, body := ask(t, "GET", address+path, nil, "Accept: application/json"); res.StatusCode != http.StatusUnauthorized || body != "Unauthorized\n" {
			t.Errorf("%s without a browser: %d %q", path, res.StatusCode, body)
		}
	}
	for token, want := range map[string]int{"forbidden": 403, "stranger": 401, "many": 429, "silence": 503} {
		res, body := ask(t, "GET", address+"/", nil, browser, "Cookie: "+serve.SessionCookie+"="+token)
		if res.StatusCode != want || !strings.Contains(body, ">"+http.StatusText(want)+"<") {
			t.Errorf("%s: %d, %s", token, res.StatusCode, body)
		}
	}
	if res, body := ask(t, "GET", address+"/login", nil, browser); res.StatusCode != http.StatusOK || !formAction.MatchString(body) {
		t.Errorf("/login itself: %d", res.StatusCode)
	}
}

// TestTheFormIsAllowedItsOwnStyle and nothing else.
func TestTheFormIsAllowedItsOwnStyle(t *testing.T) {
	address, _ := guarded(t, serve.Options{})
	res, body := ask(t, "GET", address+"/", nil, browser)
	_, style, _ := strings.Cut(body, "<style>")
	style, _, found := strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	policy := res.Header.Get("Content-Security-Policy")
	if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !found || !strings.Contains(policy, want) {
		t.Errorf("the policy %q lacks %s", policy, want)
	}
	for _, want := range []string{"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %s", policy, want)
		}
	}
}

// TestTheFormHasWhereToGo as a text and no more, whatever was asked for.
func TestTheFormHasWhereToGo(t *testing.T) {
	address, _ := guarded(t, serve.Options{})
	next := `/nodes?contains="><script>alert(1)</script><b/title='x'>&amp;&model=javascript:alert(1)`
	res, body := post(t, address+"/login", url.Values{"next": {next}})
	got := formAction.FindStringSubmatch(body)
	if res.StatusCode != http.StatusBadRequest || got == nil || html.UnescapeString(got[2]) != next || got[1] != "./login" {
		t.Errorf("%d, %q", res.StatusCode, got)
	}
	if strings.Contains(body, "<script") || strings.Contains(body, "<b/") {
		t.Errorf("an address has become a tag: %s", body)
	}
}

// TestLoggingIn gives a cookie that is as good as the header, to this host and over TLS
// alone, and sends the reader on to where they wanted to go.
func TestLoggingIn(t *testing.T) {
	address, a := guarded(t, serve.Options{Handlers: map[string]http.Handler{
		"/nodes": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("nodes")) }),
	}})
	res, _ := post(t, address+"/login", url.Values{"token": {"  allowed\n"}, "next": {"/nodes?state=Free&x=%20"}}, "Sec-Fetch-Site: same-origin")
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "./nodes?state=Free&x=%20" {
		t.Fatalf("%d, Location %q", res.StatusCode, res.Header.Get("Location"))
	}
	if asked := a.questions(); asked != "allowed /gpu-summary/nodes" {
		t.Errorf("asked about %q", asked)
	}
	if got := res.Header.Get("Set-Cookie"); got != serve.SessionCookie+"=allowed; Path=/; HttpOnly; Secure; SameSite=Strict" {
		t.Errorf("the cookie is %q", got)
	}
	if res, body := ask(t, "GET", address+"/nodes", nil, "Cookie: "+serve.SessionCookie+"=allowed"); res.StatusCode != http.StatusOK || body != "nodes" {
		t.Errorf("with the cookie: %d %q", res.StatusCode, body)
	}
	res, _ = post(t, address+"/logout", nil)
	if got := res.Header.Get("Set-Cookie"); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "./" ||
		got != serve.SessionCookie+"=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict" {
		t.Errorf("logging out: %d, cookie %q", res.StatusCode, got)
	}
}

// TestWhoeverCannotLogIn is told so by the status, and gets no cookie.
func TestWhoeverCannotLogIn(t *testing.T) {
	address, a := guarded(t, serve.Options{})
	longest := 4096 - len(serve.SessionCookie)
	for name, tc := range map[string]struct {
		token   string
		headers []string
		status  int
		says    string
	}{
		"stranger":          {"stranger", nil, 401, "Unauthorized"},
		"forbidden":         {"forbidden", nil, 403, "Forbidden"},
		"many":              {"many", nil, 429, "Too Many Requests"},
		"silence":           {"silence", nil, 503, "Service Unavailable"},
		"nothing":           {" ", nil, 400, "There is no token."},
		"no token":          {"allowed; Domain=x", nil, 400, "Was it copied whole?"},
		"two":               {"allowed allowed", nil, 400, "Was it copied whole?"},
		"too long":          {strings.Repeat("x", longest+1), nil, 400, "has " + strconv.Itoa(longest+1) + " characters, and a browser keeps " + strconv.Itoa(longest)},
		"larger than all":   {strings.Repeat("x", 20000), nil, 413, "Request Entity Too Large"},
		"from another site": {"allowed", []string{"Sec-Fetch-Site: cross-site"}, 403, "Forbidden"},
		"from elsewhere":    {"allowed", []string{"Origin: https://elsewhere.example"}, 403, "Forbidden"},
		"not a form":        {"allowed", []string{"Content-Type: text/plain"}, 415, "Unsupported Media Type"},
		"many parts":        {"allowed", []string{"Content-Type: multipart/form-data; boundary=x"}, 415, "Unsupported Media Type"},
	} {
		res, body := post(t, address+"/login", url.Values{"token": {tc.token}}, tc.headers...)
		if res.StatusCode != tc.status || !strings.Contains(body, tc.says) || res.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d, cookie %q, %s", name, res.StatusCode, res.Header.Get("Set-Cookie"), body)
		}
		if tc.token != "allowed" && len(tc.token) < 20 && strings.Contains(body, tc.token) && tc.token != "forbidden" && tc.token != " " && tc.token != "many" {
			t.Errorf("%s: the answer has the token in it", name)
		}
	}
	if res, _ := post(t, address+"/logout", nil, "Sec-Fetch-Site: cross-site"); res.StatusCode != http.StatusForbidden || res.Header.Get("Set-Cookie") != "" {
		t.Errorf("another site logs somebody out: %d", res.StatusCode)
	}
	if asked := a.questions(); strings.Contains(asked, "allowed") {
		t.Errorf("asked about %s", asked)
	}
}

// TestTheLongestTokenFits a cookie.
func TestTheLongestTokenFits(t *testing.T) {
	address, a := guarded(t, serve.Options{})
	token := strings.Repeat("x", 4096-len(serve.SessionCookie))
	post(t, address+"/login", url.Values{"token": {token}})
	if asked := a.questions(); asked != token+" /gpu-summary/" {
		t.Errorf("asked %d characters", len(asked))
	}
}

// TestOneCredential: a header is what counts if there is one, good or not, and of two
// cookies neither.
func TestOneCredential(t *testing.T) {
	address, a := guarded(t, serve.Options{})
	cookie := "Cookie: " + serve.SessionCookie + "="
	for name, tc := range map[string]struct {
		headers []string
		asked   string
	}{
		"a cookie":                    {[]string{cookie + "allowed"}, "allowed /metrics"},
		"a header and a cookie":       {[]string{"Authorization: Bearer stranger", cookie + "allowed"}, "stranger /metrics"},
		"a bad header and a cookie":   {[]string{"Authorization: Basic x", cookie + "allowed"}, ""},
		"an empty header, a cookie":   {[]string{"Authorization: ", cookie + "allowed"}, ""},
		"two cookies":                 {[]string{cookie + "allowed; " + serve.SessionCookie + "=allowed"}, ""},
		"an empty cookie":             {[]string{cookie}, ""},
		"a cookie that is no token":   {[]string{cookie + "a(b)"}, ""},
		"a cookie of another name":    {[]string{"Cookie: gpu-summary=allowed; __Secure-gpu-summary=allowed"}, ""},
		"a name that is written else": {[]string{"Cookie: __host-gpu-summary=allowed"}, ""},
	} {
		a.asked = nil
		ask(t, "GET", address+"/metrics", nil, tc.headers...)
		if got := a.questions(); got != tc.asked {
			t.Errorf("%s: asked about %q, want %q", name, got, tc.asked)
		}
	}
}

// TestNextIsOneOfOurs: whatever a form says, the reader is sent to a page of ours.
func TestNextIsOneOfOurs(t *testing.T) {
	address, _ := guarded(t, serve.Options{})
	for next, want := range map[string]string{
		"": "./", "/": "./", "/nodes": "./nodes", "/node?name=a%2Fb&x=//y": "./node?name=a%2Fb&x=//y",
		"//elsewhere.example": "./", "//elsewhere.example/": "./", "https://elsewhere.example/": "./", "javascript:alert(1)": "./", `/\elsewhere.example`: "./", "nodes": "./",
		"/../x": "./", "/a//b": "./", "/%2e%2e/x": "./", "/\r\nX: y": "./", "/x y": "./", "/é": "./",
	} {
		res, _ := post(t, address+"/login", url.Values{"token": {"allowed"}, "next": {next}})
		if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("next %q: %d, Location %q, want %q", next, res.StatusCode, got, want)
		}
		// What a browser makes of it is on our host in any case.
		base, _ := url.Parse("https://host/login")
		if to, err := base.Parse(strings.ReplaceAll(res.Header.Get("Location"), `\`, "/")); err != nil || to.Host != "host" {
			t.Errorf("next %q leads to %v, %v", next, to, err)
		}
	}
}

// TestNobodyLogsInWhereNobodyHasTo.
func TestNobodyLogsInWhereNobodyHasTo(t *testing.T) {
	address := start(t, serve.Options{})
	for _, path := range []string{"/login", "/logout"} {
		if res, _ := post(t, address+path, url.Values{"token": {"allowed"}}); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, res.StatusCode)
		}
	}
	if res, _ := ask(t, "GET", address+"/login", nil, browser); res.StatusCode != http.StatusNotFound {
		t.Errorf("GET /login: %d", res.StatusCode)
	}
}
