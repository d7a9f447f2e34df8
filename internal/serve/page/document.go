package page

import (
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// document is a page with all that is around it.
type document struct {
	Page
	stale  *api.Stale
	now    time.Time
	logout bool // whether the reader can log out
}

func (d document) draw() g.Node {
	return h.Doctype(h.HTML(h.Lang("en"), d.head(), h.Body(
		h.A(h.Class("skip"), h.Href("#main"), g.Text("Skip to the content")),
		d.top(),
		h.Div(h.ID("stale"), Live, h.Role("status"), d.alarm()),
		h.Div(h.ID("silent"), h.Role("status")),
		h.Main(h.ID("main"), h.TabIndex("-1"), h.H1(g.Text(d.Title)), d.Body),
	)))
}

func (d document) head() g.Node {
	style := func(address string) g.Node { return h.Link(h.Rel("stylesheet"), h.Href(address)) }
	script := func(address string) g.Node { return h.Script(h.Type("module"), h.Src(address)) }
	return h.Head(
		h.Meta(h.Charset("utf-8")),
		h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
		h.Meta(h.Name("color-scheme"), h.Content("light dark")),
		h.TitleEl(g.Text(d.Title+" · GPU summary")),
		h.Link(h.Rel("icon"), h.Href("./icon.svg"), h.Type("image/svg+xml")),
		style("./style.css"), g.Map(d.Styles, style),
		script("./page.js"),
	)
}

// entries are those of the navigation.
var entries = []struct{ name, address, label string }{
	{"overview", "./", "Overview"},
	{"nodes", "./nodes", "Nodes"},
	{"pending", "./pending", "Pending"},
	{"fit", "./fit", "Fit"},
	{"pipeline", "./pipeline", "Pipeline"},
}

// logo is icon.svg in the colours of the page.
const logo = `<svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true"><path class="b1" d="M1 1h7v7h-7z"/>` +
	`<path class="b2" d="M10 1h7v7h-7zM1 10h7v7h-7z"/><path class="b3" d="M10.5 10.5h6v6h-6z"/></svg>`

func (d document) top() g.Node {
	var items g.Group
	for _, e := range entries {
		items = append(items, h.Li(link{e.label, e.address, e.name == d.Active}.draw()))
	}
	return h.Header(h.Class("top"),
		h.Span(h.Class("brand"), g.Raw(logo), g.Text("GPU summary")),
		h.Nav(h.Aria("label", "Pages"), h.Ul(items)),
		g.If(d.logout, h.Form(h.Method("post"), h.Action("./logout"), h.Button(h.Class("plain"), g.Text("Log out")))),
	)
}

// alarm says that the data is stale, and why. The script goes on counting how old it is.
func (d document) alarm() g.Node {
	if d.stale == nil {
		return nil
	}
	since := d.stale.Since
	return h.Div(h.Class("alarm"),
		h.Strong(g.Text("Stale.")), g.Text(" The numbers below are those of "), moment(since),
		h.Span(h.Data("age", instant(since)), g.Textf(", %s old", age(d.now.Sub(since)))),
		g.Textf(": %s.", strings.Join(d.stale.Reasons, "; ")),
	)
}
