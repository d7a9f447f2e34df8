package integration

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// TestAccessToAController: the same as TestAccess, of a whole controller with the
// flags.
func TestAccessToAController(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	c := e.start(func(_ *rest.Config, o *run.Options) { o.HTTPAuth = "kubernetes" })
	e.shows("gpu-1=0")
	g := &guarded{env: e, url: strings.Replace(c.url, "http://", "https://", 1), log: &lines{}, client: &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}}
	e.Cleanup(g.client.CloseIdleConnections)
	token := e.reader("scraper")
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/metrics": 401} {
		if got, _ := g.get(path, ""); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	if got, _ := g.get("/metrics", token); got != 403 {
		t.Errorf("/metrics: %d, want 403", got)
	}
	e.mayGet([]string{"/metrics"}, "scraper")
	g.becomes(200, token)
	if _, body := g.get("/metrics", token); !strings.Contains(body, "\ngpu_summary_leader 1\n") {
		t.Errorf("/metrics is\n%s", body)
	}
}
