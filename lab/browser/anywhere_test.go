package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// TestWithoutScripts the tables are all there.
func TestWithoutScripts(t *testing.T) {
	c := show(synthetic(60))
	b := open(t, c.serve(t, serve.Options{}))
	command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.run(chromedp.Navigate(b.origin + "/nodes?state=Usable"))
	rows, err := chromedp.Run(b.ctx, chromedp.Nodes("#rows tbody tr"))
	if want := len((api.Selection{State: "Usable"}).Rows(c.snapshot())); err != nil || len(rows) != want {
		t.Errorf("%d rows (%v), want %d", len(rows), err, want)
	}
	if text, err := chromedp.Run(b.ctx, chromedp.Text("[data-note]")); err != nil || !strings.Contains(text, "The cells are drawn by a script.") {
		t.Errorf("%q, %v", text, err)
	}
	b.shot("nodes")
}

// TestBelowAnyPath of a proxy the pages find each other, their files and the API.
func TestBelowAnyPath(t *testing.T) {
	c := show(synthetic(60))
	behind, err := url.Parse(c.serve(t, serve.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	const below = "/clusters/one/gpu"
	proxy := httptest.NewServer(http.StripPrefix(below, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }}))
	t.Cleanup(proxy.Close)
	b := open(t, proxy.URL+below)
	b.visit("/")
	b.checkCells(c.snapshot().Rows)
	for _, label := range []string{"Nodes", "Pending", "Fit", "Overview"} {
		b.click(fmt.Sprintf(`.top nav a[href=%q]`, map[string]string{"Nodes": "./nodes", "Pending": "./pending", "Fit": "./fit", "Overview": "./"}[label]))
	}
	b.click("#models tbody a")
	b.click("#rows tbody th a")
	b.drawn()
	if got := eval[string](b, `location.pathname`); got != below+"/node" {
		t.Errorf("one has come to %s", got)
	}
}

// TestTheControllerIsSilent: the page says so by itself, with the age of its numbers.
func TestTheControllerIsSilent(t *testing.T) {
	c := show(synthetic(5))
	behind, err := url.Parse(c.serve(t, serve.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }})
	b := open(t, front.URL)
	b.visit("/")
	b.expected = []string{"ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "ERR_SOCKET_NOT_CONNECTED"}
	front.CloseClientConnections()
	front.Close()
	b.until("the page to say that nobody answers", `document.querySelector('#silent .alarm')?.textContent.match(/The controller does not answer. The numbers below are \d+ s old./)`)
	if got := eval[string](b, `getComputedStyle(document.querySelector('#silent .alarm')).color`); got != "rgb(179, 38, 30)" {
		t.Errorf("it is not said in red but in %s", got)
	}
	b.shot("silent")
}

// The most that the first view of a cluster of any size takes over the wire: the page,
// its files, and the rows of 6,000 nodes.
const maxFirstView = 512 << 10

// TestTheFirstViewIsBounded with 65,000 nodes, and it says that not all are drawn.
func TestTheFirstViewIsBounded(t *testing.T) {
	b := open(t, show(synthetic(65_000)).serve(t, serve.Options{}))
	b.visit("/")
	if got := eval[string](b, `document.querySelector('[data-note]').textContent`); !strings.HasPrefix(got, "6,000 of 65,000 nodes are drawn") {
		t.Errorf("it says %q", got)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Logf("%.0f bytes in %d requests", b.received, len(b.requests))
	if b.received > maxFirstView || b.received < 1000 {
		t.Errorf("%.0f bytes, want %d at most", b.received, maxFirstView)
	}
}
