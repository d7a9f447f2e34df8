package browser

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

// doorman lets the token "good" read everything.
type doorman struct{}

func (doorman) Decide(_ context.Context, token, _ string) serve.Verdict {
	if token == "good" {
		return serve.Allowed
	}
	return serve.Unauthenticated
}

// TestLoggingIn with a browser: whoever has no token is asked for one, wherever they
// wanted to go, and comes there. What the browser keeps no script can read.
func TestLoggingIn(t *testing.T) {
	certificates, err := serve.SelfMadeCertificate()
	if err != nil {
		t.Fatal(err)
	}
	c := show(synthetic(60))
	b := open(t, c.serve(t, serve.Options{Auth: doorman{}, TLS: certificates}))
	b.expected = []string{"status of 401"}
	b.run(chromedp.Navigate(b.origin + "/nodes?state=Free"))
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, fault := range b.faults() {
			t.Errorf("the form, %s: %s", scheme, fault)
		}
		b.shot("form-" + scheme)
	}
	if eval[bool](b, `document.activeElement !== document.querySelector('#token')`) {
		t.Error("one cannot type at once")
	}
	send := func(token string) {
		t.Helper()
		b.run(chromedp.Evaluate[chromedp.Void](`window.before = true; undefined`), chromedp.SendKeys("#token", token))
		// A click here is not always answered: Chromium would like to keep the password.
		b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector('form').requestSubmit(); undefined`))
		b.until("an answer", `window.before === undefined && document.readyState === 'complete'`)
	}
	send("bad")
	if got := eval[string](b, `document.querySelector('[role=alert]').textContent`); got != "Unauthorized" {
		t.Errorf("a bad token: %q", got)
	}
	send("good")
	b.drawn()
	if got := eval[string](b, `location.pathname + location.search`); got != "/nodes?state=Free" {
		t.Errorf("one has come to %s", got)
	}
	b.until("the cells", `document.querySelector('[data-cells] path')`)
	if got := eval[string](b, `document.cookie`); got != "" {
		t.Errorf("scripts can read %q", got)
	}
	b.shot("logged-in")
	b.run(chromedp.Evaluate[chromedp.Void](`window.before = true; undefined`), chromedp.Click(`form[action="./logout"] button`))
	b.until("the form again", `window.before === undefined && document.querySelector('#token')`)
	b.run(chromedp.Navigate(b.origin + "/pending"))
	if !eval[bool](b, `document.querySelector('#token') !== null`) {
		t.Error("after logging out one is let in")
	}
}
