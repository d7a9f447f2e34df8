package pipeline

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

//go:embed pipeline.css
var style []byte

// Handlers are the page, what it needs, and the same as JSON. They work also while the
// caches are not complete: that is when one looks here.
func Handlers(layout page.Layout, read func() Numbers) map[string]http.Handler {
	return map[string]http.Handler{
		"/pipeline": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			layout.Render(w, r, page.Page{Title: "Pipeline", Active: "pipeline", Body: show(read()).body(), Styles: []string{"./pipeline.css"}})
		}),
		"/pipeline.css": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/css; charset=utf-8")
			api.Reply(w, r, style)
		}),
		api.Prefix + "pipeline": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := api.Read(r).Err(); err != nil {
				api.Refuse(w, r, http.StatusBadRequest, err.Error())
				return
			}
			n := read()
			text, _ := json.Marshal(document{SchemaVersion, Judge(n), n}) // numbers and strings cannot fail
			w.Header().Set("Content-Type", "application/json")
			api.Reply(w, r, text)
		}),
	}
}

// SchemaVersion is that of the JSON. Within it properties may be added.
const SchemaVersion = "1"

// document is what the JSON is.
type document struct {
	SchemaVersion string    `json:"schemaVersion"`
	Components    []Verdict `json:"components"`
	Numbers
}

// shown is what the page is made from.
type shown struct {
	State    State
	Headline string
	Boxes    []Box
	Sections []Section
}

func show(n Numbers) shown {
	s := shown{State: OK, Boxes: drawing(n), Sections: Sections(n)}
	for _, section := range s.Sections {
		if section.State.worse(s.State) {
			s.State = section.State
		}
	}
	if s.State == OK {
		s.Headline = "Nothing is wrong, and nothing waits."
		return s
	}
	var lines []string
	for _, section := range s.Sections {
		if section.State == s.State {
			lines = append(lines, section.Title+": "+section.Reason)
		}
	}
	s.Headline = strings.Join(lines, ". ") + "."
	if s.State == Busy {
		s.Headline = "Nothing is wrong. " + s.Headline
	}
	return s
}
