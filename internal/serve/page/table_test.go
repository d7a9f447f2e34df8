package page_test

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

// TestTheTableIsSorted by whatever is asked for, the nodes of equal rows by name, and
// its head says so.
func TestTheTableIsSorted(t *testing.T) {
	names := regexp.MustCompile(`<th scope="row"><a href="[^"]*">([^<]*)</a>`)
	for query, want := range map[string]string{
		"": "node-00000", "?sort=-node": "node-00004", "?sort=over": "node-00000", "?sort=-over": "node-00002",
		"?sort=allocatable": "node-00002", "?sort=usable": "node-00001", "?sort=-model": "node-00002", "?sort=-free&contains=3": "node-00003",
	} {
		w := cluster(5)
		w.Nodes[1].States = []count.State{count.NotReady}
		w.Nodes[2].Allocatable = gpus(2)
		_, body := visit(t, page.Layout{}, viewOf(w), "/nodes"+query)
		if got := names.FindStringSubmatch(body); got == nil || got[1] != want {
			t.Errorf("%q: first is %q, want %s", query, got, want)
		}
		if got := strings.Count(body, "aria-sort="); got != 1 {
			t.Errorf("%q: %d columns are said to be sorted", query, got)
		}
	}
}

// TestTheThousandthPart is linked as it is asked for: without a comma.
func TestTheThousandthPart(t *testing.T) {
	w := count.World{NodesKnown: true}
	for i := range 100_100 { // 1,001 parts
		w.Pods = append(w.Pods, &count.Pod{Key: fmt.Sprintf("a/%06d", i), Requests: gpus(1), Wait: count.Untried})
	}
	v := viewOf(w)
	for path, want := range map[string]string{"/pending?page=999": "./pending?page=1000", "/pending?page=1001": "./pending?page=1000"} {
		if _, body := visit(t, page.Layout{}, v, path); !strings.Contains(body, `"`+want+`"`) {
			t.Errorf("%s does not lead to %s", path, want)
		}
	}
}

// TestPartsOfTheTable together are the whole, by following what leads to the next.
func TestPartsOfTheTable(t *testing.T) {
	next := regexp.MustCompile(`<a href="\.([^"]*)" rel="next">`)
	rows := regexp.MustCompile(`<th scope="row">(?:<a [^>]*>)?([^<]*)<`)
	for _, path := range []string{"/nodes?sort=-requested&contains=node", "/pending?namespace=team-3"} {
		var seen []string
		v, pages := viewOf(cluster(5000)), 0
		for path != "" && pages < 100 {
			pages++
			_, body := visit(t, page.Layout{}, v, path)
			_, body, _ = strings.Cut(body, ", a wide table")
			for _, m := range rows.FindAllStringSubmatch(body, -1) {
				if strings.Contains(m[1], "-0") {
					seen = append(seen, m[1])
				}
			}
			path = ""
			if m := next.FindStringSubmatch(body); m != nil {
				path = html.UnescapeString(m[1])
			}
		}
		slices.Sort(seen)
		want := map[bool]int{true: 5000, false: 250}[pages > 3]
		if len(slices.Compact(slices.Clone(seen))) != want || len(seen) != want {
			t.Errorf("%d rows in %d pages, want %d", len(seen), pages, want)
		}
	}
}
