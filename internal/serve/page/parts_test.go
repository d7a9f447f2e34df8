package page_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

// TestPartsThatAreKeptUpToDate are these. The script finds them by their ids.
func TestPartsThatAreKeptUpToDate(t *testing.T) {
	live := regexp.MustCompile(`<[^>]* data-live[^>]*>`)
	id := regexp.MustCompile(` id="([^"]*)"`)
	v := worlds()["full"]
	for path, want := range map[string][]string{
		"/":                     {"stale", "totals", "models", "history", "waiting", "observed"},
		"/nodes":                {"stale", "rows"},
		"/node?name=node-00001": {"stale", "node", "pods"},
		"/pending":              {"stale", "why", "shapes", "pods"},
		"/fit":                  {"stale", "answer"},
	} {
		_, body := visit(t, page.Layout{}, v, path)
		var got []string
		for _, tag := range live.FindAllString(body, -1) {
			m := id.FindStringSubmatch(tag)
			if m == nil {
				t.Errorf("%s: %s has no id", path, tag)
				continue
			}
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q are kept up to date, want %q", path, got, want)
		}
	}
}

// TestFormsShowWhatWasAskedFor, and offer the rest.
func TestFormsShowWhatWasAskedFor(t *testing.T) {
	v := worlds()["full"]
	for path, want := range map[string][]string{
		"/nodes?model=model-1&state=Free&sort=-free&contains=node": {
			`<option selected>model-1</option>`, `<option value="Free" selected>has usable free</option>`, `<option selected>nvidia.com/gpu</option>`,
			`name="sort" value="-free"`, `name="contains" value="node"`, `<a href="./nodes?resource=nvidia.com%2Fgpu">Show all</a>`,
		},
		"/pending?namespace=team-1&reason=gated": {`<option selected>team-1</option>`, `<option value="gated" selected>held by a gate</option>`, `name="resource" value="nvidia.com/gpu"`},
		"/fit?gpus=4&pods=3&resource=amd.com/gpu": {`<option selected>amd.com/gpu</option>`, `name="gpus" type="number" min="1" max="1000000" required value="4"`,
			`name="pods" type="number" min="1" max="10000" required value="3"`},
	} {
		_, body := visit(t, page.Layout{}, v, path)
		for _, part := range want {
			if !strings.Contains(body, part) {
				t.Errorf("%s lacks %s", path, part)
			}
		}
		if got, most := strings.Count(body, " selected>"), strings.Count(strings.Join(want, ""), " selected>"); got != most {
			t.Errorf("%s: %d are chosen, want %d", path, got, most)
		}
	}
	for _, path := range []string{"/nodes", "/pending"} {
		if _, body := visit(t, page.Layout{}, v, path); strings.Contains(body, "Show all") || strings.Contains(body, "of those asked for") {
			t.Errorf("%s: all are shown, and yet more are offered", path)
		}
	}
}

// TestWhatIsNotShownIsSaid.
func TestWhatIsNotShownIsSaid(t *testing.T) {
	w := cluster(130)
	for i, n := range w.Nodes {
		n.Labels[0].Value = fmt.Sprintf("model-%d", i)
		w.Pods = append(w.Pods, &count.Pod{Key: fmt.Sprintf("a/small-%d", i), Node: "node-00000"})
	}
	for i := range 501 {
		w.Pods = append(w.Pods, &count.Pod{Key: fmt.Sprintf("a/p-%d", i), Node: "node-00000", Requests: gpus(1)})
	}
	v := viewOf(w)
	for path, want := range map[string]string{
		"/": "30 more models not shown.", "/node?name=node-00000": "2 more pods not shown.", "/fit?pods=10000": "29 more nodes not shown.",
		"/nodes": "1 to 100 of 130 After", "/nodes?page=2": "101 to 130 of 130 Before",
	} {
		if _, body := visit(t, page.Layout{}, v, path); !strings.Contains(text(body), want) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
	if _, body := visit(t, page.Layout{}, viewOf(cluster(3)), "/"); strings.Contains(body, "not shown") {
		t.Error("all is shown, and said not to be")
	}
}

// TestZeroIsPale where it is as usual, and only there.
func TestZeroIsPale(t *testing.T) {
	w := cluster(1)
	_, body := visit(t, page.Layout{}, viewOf(w), "/nodes")
	if want := `<td class="num">8</td><td class="num">3</td><td class="num">5</td><td class="num">5</td><td class="num zero">0</td>`; !strings.Contains(body, want) {
		t.Errorf("no %s", want)
	}
	w.Nodes[0].Allocatable = gpus(1)
	_, body = visit(t, page.Layout{}, viewOf(w), "/nodes")
	if want := `<td class="num">1</td><td class="num">3</td><td class="num zero">0</td><td class="num zero">0</td><td class="num bad">2</td>`; !strings.Contains(body, want) {
		t.Errorf("no %s", want)
	}
}

// TestWhatIsNotKnownIsNotShown.
func TestWhatIsNotKnownIsNotShown(t *testing.T) {
	_, body := visit(t, page.Layout{}, worlds()["without nodes"], "/")
	for _, id := range []string{"allocatable", "usable", "overcommitted", "orphaned", "models"} {
		if strings.Contains(body, ` id="`+id+`"`) {
			t.Errorf("%s is shown, and nodes are not known", id)
		}
	}
}

// TestWideTablesAreScrolledWithTheKeyboard too, and have a name.
func TestWideTablesAreScrolledWithTheKeyboard(t *testing.T) {
	v := worlds()["full"]
	for path, what := range map[string]string{"/": "Models", "/nodes": "Nodes", "/node?name=node-00001": "Devices", "/pending": "Pods"} {
		_, body := visit(t, page.Layout{}, v, path)
		if want := `<div class="scroll" tabindex="0" role="region" aria-label="` + what + `, a wide table"><table>`; !strings.Contains(body, want) {
			t.Errorf("%s lacks %s", path, want)
		}
	}
}
