package page

import (
	"bytes"
	"embed"
	"net/http"
	"time"

	g "maragu.dev/gomponents"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// Policy is the Content-Security-Policy of every page: what is not served here is not
// loaded, and neither scripts nor styles stand in the page itself. style attributes
// count as the latter.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

//go:embed style.css page.js field.js press.js icon.svg
var files embed.FS

// Layout is what all pages have around them: head, navigation, the word that the data
// is stale. The zero value works.
type Layout struct {
	// Session is the cookie that says that a reader has logged in, and so may log out;
	// "" where nobody has to.
	Session string
	// Stale returns what is wrong with the data on the pages, nil for nothing.
	Stale func() *api.Stale
}

// Page is one page. Pages are served side by side, none below another.
type Page struct {
	// Title is the heading, and what the window is called.
	Title string
	// Active is the entry of the navigation that the page belongs to: overview, nodes,
	// pending, fit or pipeline.
	Active string
	// Body stands inside of <main> and below the heading. Live marks the parts of it
	// that are kept up to date.
	Body g.Node
	// Status is 200 unless set.
	Status int
	// Styles are further style sheets, relative to the page.
	Styles []string
}

// Live marks an element, which must have an id: when the page has changed, the script
// exchanges it for the one with the same id in a new copy.
var Live = g.Attr("data-live")

// Render answers a request with a page.
func (l Layout) Render(w http.ResponseWriter, r *http.Request, p Page) {
	d := document{Page: p, now: time.Now()}
	if l.Stale != nil {
		d.stale = l.Stale()
	}
	if l.Session != "" {
		_, err := r.Cookie(l.Session)
		d.logout = err == nil
	}
	var whole bytes.Buffer
	if err := d.draw().Render(&whole); err != nil {
		// The buffer takes everything, so this is a mistake of ours.
		http.Error(w, "this page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Security-Policy", Policy)
	header.Set("Content-Type", "text/html; charset=utf-8")
	if p.Status != 0 && p.Status != http.StatusOK {
		header.Set("Cache-Control", "no-store")
		w.WriteHeader(p.Status)
		_, _ = w.Write(whole.Bytes())
		return
	}
	api.Reply(w, r, whole.Bytes())
}

// asset serves an embedded file.
func asset(name, contentType string) http.Handler {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded above
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		api.Reply(w, r, text)
	})
}
