package page_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

// TestLoggingOut is offered to those who have logged in.
func TestLoggingOut(t *testing.T) {
	v, cookie := viewOf(cluster(1)), &http.Cookie{Name: "session", Value: "x"}
	for _, tc := range []struct {
		layout  page.Layout
		cookies []*http.Cookie
		want    bool
	}{{page.Layout{Session: "session"}, []*http.Cookie{cookie}, true}, {page.Layout{Session: "session"}, nil, false}, {page.Layout{}, []*http.Cookie{cookie}, false}} {
		_, body := visit(t, tc.layout, v, "/", tc.cookies...)
		if got := strings.Contains(body, `action="./logout"`); got != tc.want {
			t.Errorf("%+v, %d cookies: %t", tc.layout, len(tc.cookies), got)
		}
	}
}

// TestALayoutIsForOtherPagesToo.
func TestALayoutIsForOtherPagesToo(t *testing.T) {
	layout := page.Layout{Stale: func() *api.Stale { return &api.Stale{Since: time.Now(), Reasons: []string{"why"}} }}
	w := httptest.NewRecorder()
	layout.Render(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/pipeline", nil), page.Page{
		Title: "Pipeline", Active: "pipeline", Styles: []string{"./x.css"},
		Body: h.P(h.ID("x"), page.Live, g.Text("a & b")),
	})
	for _, want := range []string{
		`<h1>Pipeline</h1>`, `<p id="x" data-live>a &amp; b</p>`, `<a href="./pipeline" aria-current="page">`, `<link rel="stylesheet" href="./x.css">`,
		`class="alarm"`,
	} {
		if !bytes.Contains(w.Body.Bytes(), []byte(want)) {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
	w = httptest.NewRecorder()
	layout.Render(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", nil), page.Page{
		Body: g.NodeFunc(func(io.Writer) error { return errors.New("cannot be drawn") }),
	})
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "<main") {
		t.Errorf("a page that cannot be made: %d\n%s", w.Code, w.Body)
	}
}
