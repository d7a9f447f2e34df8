package page_test

import (
	"html"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

// hostileNames are those of which a careless page would make an address elsewhere, a
// script, or another parameter.
var hostileNames = []string{
	"javascript:alert(1)", "https://elsewhere.example/", "//elsewhere.example", `\\elsewhere.example`, "../../up", "./", "#main", "?name=other",
	"</script><script>alert(1)</script>", `"><b title='x'>`, "' onclick='alert(1)", "`", "a\r\nb", "\t", "a&b=c;d#e+f%41", "é ×",
}

// named is a world in which everything is called the same that can be.
func named(name string) count.World {
	w := cluster(110) // there are pages to turn to
	all := gpus(8)
	all = append(all, count.Amount{Resource: name, Value: 2})
	slices.SortFunc(all, func(a, b count.Amount) int { return strings.Compare(a.Resource, b.Resource) })
	for _, n := range w.Nodes {
		n.Capacity, n.Allocatable, n.Labels[0].Value = all, all, name
	}
	w.Nodes[0].Name = name
	w.Pods = append(w.Pods, &count.Pod{Key: name + "/" + name, Node: name, Requests: gpus(7)}) // what fits goes there first
	for range 110 {
		w.Pods = append(w.Pods, &count.Pod{Key: name + "/" + name, Requests: all})
	}
	return w
}

// TestAddressesAreOurs, whatever things are called: each is that of another page beside
// this one, and a name is all of a parameter or no part of it.
func TestAddressesAreOurs(t *testing.T) {
	base, err := url.Parse("https://host/below/this/page")
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Collect(maps.Keys(page.Handlers(page.Layout{}, nil)))
	known = append(known, "/", "/logout", "/pipeline", "/api/v1/snapshot", "/api/v1/openapi.json")
	for _, name := range hostileNames {
		v, is := viewOf(named(name)), url.QueryEscape(name)
		for _, path := range []string{
			"/?resource=" + is, "/nodes?page=2&resource=" + is + "&model=" + is, "/nodes?sort=-free&contains=" + is, "/node?name=" + is,
			"/pending?resource=" + is + "&namespace=" + is, "/fit?model=" + is,
		} {
			res, body := visit(t, page.Layout{Session: "s"}, v, path, &http.Cookie{Name: "s", Value: "x"})
			if res.Code != http.StatusOK {
				t.Errorf("%q, %s: %d", name, path, res.Code)
			}
			named := 0
			for _, m := range addresses.FindAllStringSubmatch(body, -1) {
				written := html.UnescapeString(m[1])
				if written == "#main" {
					continue
				}
				to, err := base.Parse(written)
				if err != nil || !strings.HasPrefix(written, "./") || to.Scheme != "https" || to.Host != "host" || to.Fragment != "" ||
					!slices.Contains(known, strings.TrimPrefix(to.Path, "/below/this")) {
					t.Errorf("%q, %s: the address %q leads to %v, %v", name, path, written, to, err)
					continue
				}
				query, err := url.ParseQuery(to.RawQuery)
				if err != nil {
					t.Errorf("%q, %s: %q: %v", name, path, written, err)
				}
				for parameter, values := range query {
					if slices.Contains(values, name) {
						named++
					}
					if !slices.Contains([]string{"resource", "model", "name", "namespace", "reason", "state", "contains", "sort", "page", "gpus"}, parameter) {
						t.Errorf("%q, %s: %q has a parameter %q", name, path, written, parameter)
					}
				}
			}
			if named == 0 {
				t.Errorf("%q, %s: no address has the name", name, path)
			}
		}
	}
}
