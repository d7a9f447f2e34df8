package page

import (
	"cmp"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// Handlers are the pages and the files that they need.
func Handlers(layout Layout, view api.Source) map[string]http.Handler {
	s := site{layout: layout, view: view}
	return map[string]http.Handler{
		"/{$}":       s.page("overview", "Overview", bodies.Lookup("overview.html"), []string{"resource"}, overview),
		"/nodes":     s.page("nodes", "Nodes", bodies.Lookup("nodes.html"), slices.Concat(api.SelectionParameters[1:], []string{"sort", "page"}), nodes),
		"/node":      s.page("nodes", "Node", bodies.Lookup("node.html"), []string{"name"}, node),
		"/pending":   s.page("pending", "Pending pods", bodies.Lookup("pending.html"), []string{"resource", "namespace", "reason", "page"}, pending),
		"/fit":       s.page("fit", "What would fit", bodies.Lookup("fit.html"), []string{"resource", "model", "gpus", "pods"}, fit),
		"/style.css": asset("style.css", "text/css; charset=utf-8"),
		"/page.js":   asset("page.js", "text/javascript; charset=utf-8"),
		"/field.js":  asset("field.js", "text/javascript; charset=utf-8"),
		"/icon.svg":  asset("icon.svg", "image/svg+xml"),
	}
}

var bodies = template.Must(template.New("").Funcs(Funcs).ParseFS(files,
	"parts.html", "overview.html", "nodes.html", "node.html", "pending.html", "fit.html", "problem.html"))

// site is all pages together.
type site struct {
	layout Layout
	view   api.Source
}

// answer makes the data of a page from a view and a query. It may change the page's
// title and status.
type answer func(*Page, api.View, *api.Parameters) any

// trouble is why a page has nothing to show.
type trouble struct {
	What  string
	Lines []string
}

func (s site) page(active, title string, body *template.Template, allowed []string, answer answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, p := s.view(r.Context()), api.Read(r, allowed...)
		layout := s.layout
		layout.Stale = func() *api.Stale { return v.Stale }
		page := Page{Title: title, Active: active, Body: body}
		fail := func(status int, t trouble) {
			page.Status, page.Body, page.Data = status, bodies.Lookup("problem.html"), t
			layout.Render(w, r, page)
		}
		if v.Snapshot == nil {
			w.Header().Set("Retry-After", "1")
			fail(http.StatusServiceUnavailable, trouble{"The caches are not complete yet. This takes seconds after a start, unless something is missing:", v.Missing})
			return
		}
		if p.Err() == nil {
			page.Data = answer(&page, v, p)
		}
		if p.Err() != nil {
			fail(http.StatusBadRequest, trouble{"This page was asked for something that it does not have:", []string{p.Err().Error()}})
			return
		}
		if t, ok := page.Data.(trouble); ok {
			fail(cmp.Or(page.Status, http.StatusNotFound), t)
			return
		}
		layout.Render(w, r, page)
	})
}

// link is an entry of a list of them.
type link struct {
	Label, Address string
	Current        bool
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
	for _, sum := range snap.Summaries {
		if sum.Resource == count.NVIDIA {
			return count.NVIDIA
		}
	}
	if len(snap.Summaries) > 0 {
		return snap.Summaries[0].Resource
	}
	return count.NVIDIA
}

// resources links to the same page for each resource, if there are several.
func resources(snap *count.Snapshot, page, current string) (links []link) {
	if len(snap.Summaries) < 2 {
		return nil
	}
	for _, sum := range snap.Summaries {
		links = append(links, link{sum.Resource, address(page, url.Values{"resource": {sum.Resource}}), sum.Resource == current})
	}
	return links
}

// pager is where a long table can be turned to.
type pager struct {
	First, Last, Total int // the first and last item shown, from 1
	Before, After      string
}

// perPage is how many rows a table has at most. With 65,000 nodes a page is no larger
// than with a hundred.
const perPage = 100

// turn picks the items of the page that is asked for.
func turn[T any](p *api.Parameters, items []T, to func(page string) string) ([]T, pager) {
	pages := max(1, (len(items)+perPage-1)/perPage)
	// There may have been more of them when the reader was sent here.
	at := min(int(p.Number("page", 1, 1, math.MaxInt32)), pages)
	from, until := (at-1)*perPage, min(at*perPage, len(items))
	out := pager{First: from + 1, Last: until, Total: len(items)}
	if at > 1 {
		out.Before = to(number(at - 1))
	}
	if at < pages {
		out.After = to(number(at + 1))
	}
	return items[from:until], out
}
