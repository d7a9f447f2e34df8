package api

import (
	"cmp"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// Prefix is what all paths begin with.
const Prefix = "/api/v1/"

// maxItems is the largest limit that can be asked for.
const maxItems = 1_000_000

//go:embed openapi.json
var document []byte

// Handlers answer from the view at the moment of the request.
func Handlers(view Source) map[string]http.Handler {
	s := source(view)
	return map[string]http.Handler{
		Prefix + "snapshot": s.handle(nil, snapshot),
		Prefix + "nodes":    s.handle(slices.Concat(SelectionParameters, []string{"holders", "limit", "continue"}), nodes),
		Prefix + "pods":     s.handle([]string{"node", "namespace", "pending", "reason", "limit", "continue"}, pods),
		Prefix + "fit":      s.handle([]string{"resource", "model", "gpus", "pods"}, fit),
		Prefix + "history":  s.handle([]string{"resource"}, history),
		Prefix + "openapi.json": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := Read(r).Err(); err != nil {
				Refuse(w, r, http.StatusBadRequest, err.Error())
				return
			}
			w.Header().Set("Content-Type", "application/json")
			Reply(w, r, document)
		}),
		"/api/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			Refuse(w, r, http.StatusNotFound, "there is nothing at "+r.URL.Path+"; "+Prefix+"openapi.json lists what there is")
		}),
	}
}

type source Source

// handle answers with what answer returns, or with its mistakes.
func (s source) handle(allowed []string, answer func(View, *Parameters) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := Read(r, allowed...)
		if p.Err() != nil {
			Refuse(w, r, http.StatusBadRequest, p.Err().Error())
			return
		}
		v := s(r.Context())
		if v.Snapshot == nil {
			Refuse(w, r, http.StatusServiceUnavailable, strings.Join(append([]string{"the caches are not complete"}, v.Missing...), "; "))
			return
		}
		document := answer(v, p)
		if refusal, ok := document.(refusal); ok {
			Refuse(w, r, refusal.status, refusal.why)
			return
		}
		if p.Err() != nil {
			Refuse(w, r, http.StatusBadRequest, p.Err().Error())
			return
		}
		body, _ := json.Marshal(document) // numbers and strings cannot fail
		w.Header().Set("Content-Type", "application/json")
		Reply(w, r, body)
	})
}

// refusal is an answer that is none, for another reason than a bad parameter.
type refusal struct {
	status int
	why    string
}

// envelope is what every document begins with.
type envelope struct {
	SchemaVersion string `json:"schemaVersion"`
	// Stale is there when the numbers may be old.
	Stale *Stale `json:"stale,omitempty"`
}

func (v View) envelope() envelope { return envelope{publish.SchemaVersion, v.Stale} }

// snapshot is summary.json as it is published, and what it was computed from.
func snapshot(v View, _ *Parameters) any {
	snap := *v.Snapshot
	snap.Summaries = make([]count.Summary, len(v.Snapshot.Summaries))
	for i, sum := range v.Snapshot.Summaries {
		snap.Summaries[i] = withoutNil(sum)
	}
	return struct {
		envelope
		count.Snapshot
	}{v.envelope(), snap}
}

// withoutNil is a copy in which every list is one: null would be another thing to
// readers, though it means the same.
func withoutNil(s count.Summary) count.Summary {
	lists(&s.Pending.Reasons)
	lists(&s.Pending.Shapes)
	s.Models = slices.Clone(s.Models)
	lists(&s.Models)
	for i := range s.Models {
		lists(&s.Models[i].Fit.Sizes)
		lists(&s.Models[i].Fit.Histogram)
	}
	lists(&s.Fit.Sizes)
	lists(&s.Fit.Histogram)
	lists(&s.Namespaces)
	lists(&s.Priorities)
	return s
}

func lists[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

// row is a count.Row, and who holds the devices if that was asked for.
type row struct {
	count.Row
	Holders []count.Holder `json:"holders,omitempty"`
}

type nodesDocument struct {
	envelope
	Rows     []row  `json:"rows"`
	Continue string `json:"continue,omitempty"`
}

func nodes(v View, p *Parameters) any {
	selection, holders := ReadSelection(p), p.Flag("holders")
	key := func(r *count.Row) string { return r.Node + "\x00" + r.Resource + "\x00" + string(r.Source) }
	rows, next := page(p, selection.Rows(v.Snapshot), func(r count.Row) string { return key(&r) })
	document := nodesDocument{envelope: v.envelope(), Rows: make([]row, len(rows)), Continue: next}
	var held [][]count.Holder
	if holders {
		held = count.Holders(rows, v.Pods)
	}
	for i := range rows {
		document.Rows[i].Row = rows[i]
		if held != nil {
			document.Rows[i].Holders = held[i]
		}
	}
	return document
}

// page takes the part of a sorted list that limit and continue ask for. What it says
// to go on with is the key of the last item: whatever comes and goes meanwhile, no
// other item is left out or seen twice.
func page[T any](p *Parameters, items []T, key func(T) string) (part []T, next string) {
	limit := p.Number("limit", maxItems, 1, maxItems)
	if token := p.Text("continue"); token != "" {
		after, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			p.fail("parameter \"continue\" is %q; want what an answer said to continue with", token)
			return nil, ""
		}
		at, found := slices.BinarySearchFunc(items, string(after), func(item T, after string) int { return cmp.Compare(key(item), after) })
		if found {
			at++
		}
		items = items[at:]
	}
	if int64(len(items)) <= limit {
		return items, ""
	}
	items = items[:limit]
	return items, base64.RawURLEncoding.EncodeToString([]byte(key(items[limit-1])))
}
