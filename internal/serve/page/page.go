package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// Handlers are the pages and the files that they need.
func Handlers(layout Layout, view api.Source) map[string]http.Handler {
	s := site{layout: layout, view: view}
	return map[string]http.Handler{
		"/{$}":       s.page("overview", "Overview", overviewPage, "resource"),
		"/nodes":     s.page("nodes", "Nodes", nodesPage, slices.Concat(api.SelectionParameters[1:], []string{"sort", "page"})...),
		"/node":      s.page("nodes", "Node", nodePage, "name"),
		"/pending":   s.page("pending", "Pending pods", pendingPage, "resource", "namespace", "reason", "page"),
		"/fit":       s.page("fit", "What would fit", fitPage, "resource", "model", "gpus", "pods"),
		"/style.css": asset("style.css", "text/css; charset=utf-8"),
		"/page.js":   asset("page.js", "text/javascript; charset=utf-8"),
		"/field.js":  asset("field.js", "text/javascript; charset=utf-8"),
		"/press.js":  asset("press.js", "text/javascript; charset=utf-8"),
		"/icon.svg":  asset("icon.svg", "image/svg+xml"),
	}
}

// site is all pages together.
type site struct {
	layout Layout
	view   api.Source
}

// answer makes a page of a view and a query. A title of its own replaces the usual one.
type answer func(api.View, *api.Parameters) Page

func (s site) page(active, title string, answer answer, allowed ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := s.view(r.Context())
		page := answer.to(v, api.Read(r, allowed...))
		page.Active, page.Title = active, cmp.Or(page.Title, title)
		if page.Status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		layout := s.layout
		layout.Stale = func() *api.Stale { return v.Stale }
		layout.Render(w, r, page)
	})
}

// to is what a request is answered with, which may be that there is no answer.
func (a answer) to(v api.View, p *api.Parameters) Page {
	if v.Snapshot == nil {
		return trouble(http.StatusServiceUnavailable, "The caches are not complete yet. This takes seconds after a start, unless something is missing:", v.Missing...)
	}
	if p.Err() == nil {
		// What is wrong with a parameter is found when it is read.
		if page := a(v, p); p.Err() == nil {
			return page
		}
	}
	return trouble(http.StatusBadRequest, "This page was asked for something that it does not have:", p.Err().Error())
}

// trouble is a page that has nothing to show, and says why.
func trouble(status int, what string, lines ...string) Page {
	item := func(line string) g.Node { return h.Li(g.Text(line)) }
	return Page{Status: status, Body: h.Div(h.Class("card"),
		h.P(g.Text(what)),
		g.If(len(lines) > 0, h.Ul(g.Map(lines, item))),
	)}
}

// address is one of our pages with a query, without what is empty.
func address(page string, query url.Values) string {
	for name, values := range query {
		if strings.Join(values, "") == "" {
			delete(query, name)
		}
	}
	if len(query) == 0 {
		return "./" + page
	}
	return "./" + page + "?" + query.Encode()
}

// resourceOf is the resource that a page is about: the one asked for, else NVIDIA's,
// else the first that there is.
func resourceOf(snap *count.Snapshot, asked string) string {
	if asked != "" {
		return asked
	}
	names := resources(snap)
	if len(names) == 0 || slices.Contains(names, count.NVIDIA) {
		return count.NVIDIA
	}
	return names[0]
}

// resources are all that there are.
func resources(snap *count.Snapshot) (names []string) {
	for _, sum := range snap.Summaries {
		names = append(names, sum.Resource)
	}
	return names
}

// resourceLinks lead to the same page for each resource, if there are several.
func resourceLinks(snap *count.Snapshot, page, current string) (links []link) {
	names := resources(snap)
	if len(names) < 2 {
		return nil
	}
	for _, name := range names {
		links = append(links, link{name, address(page, url.Values{"resource": {name}}), name == current})
	}
	return links
}
