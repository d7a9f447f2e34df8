package page

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// Policy is the Content-Security-Policy of every page: what is not served here is not
// loaded, and neither scripts nor styles stand in the page itself. style attributes
// count as the latter.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

//go:embed *.html style.css page.js field.js icon.svg
var files embed.FS

var layout = template.Must(template.New("layout.html").Funcs(Funcs).ParseFS(files, "layout.html"))

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
	// Body is executed with Data, inside of <main> and below the heading. An element
	// with an id and the attribute data-live is kept up to date: when the page has
	// changed, the script exchanges it for the one with the same id in a new copy.
	Body *template.Template
	Data any
	// Status is 200 unless set.
	Status int
	// Styles and Scripts are further files, relative to the page. A script is a module.
	Styles, Scripts []string
}

// Entry is one of the navigation.
type Entry struct{ Name, Address, Label string }

var entries = []Entry{
	{"overview", "./", "Overview"},
	{"nodes", "./nodes", "Nodes"},
	{"pending", "./pending", "Pending"},
	{"fit", "./fit", "Fit"},
	{"pipeline", "./pipeline", "Pipeline"},
}

// frame is what layout.html is executed with.
type frame struct {
	Page
	Entries []Entry
	Inside  template.HTML
	Stale   *api.Stale
	Now     time.Time
	Logout  bool
}

// Render answers a request with a page.
func (l Layout) Render(w http.ResponseWriter, r *http.Request, p Page) {
	var inside, whole bytes.Buffer
	if err := p.Body.Execute(&inside, p.Data); err != nil {
		// A template that does not fit its data is a mistake of ours, and the tests
		// execute all of them.
		http.Error(w, "this page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	f := frame{Page: p, Entries: entries, Inside: template.HTML(inside.String()), Now: time.Now()}
	if l.Stale != nil {
		f.Stale = l.Stale()
	}
	if l.Session != "" {
		_, err := r.Cookie(l.Session)
		f.Logout = err == nil
	}
	if err := layout.Execute(&whole, f); err != nil {
		http.Error(w, "this page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", Policy)
	h.Set("Content-Type", "text/html; charset=utf-8")
	if p.Status != 0 && p.Status != http.StatusOK {
		h.Set("Cache-Control", "no-store")
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
