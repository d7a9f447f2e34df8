package browser

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

//go:embed accessible.js
var rules string

// named are the roles that mean nothing to a screen reader without a name.
var named = []string{
	"button", "link", "textbox", "combobox", "spinbutton", "listbox", "option", "image", "img", "navigation", "region", "heading", "columnheader", "rowheader", "RootWebArea",
}

// faults are those of accessible.js, and what Chromium would tell a screen reader
// without a name.
func (b *tab) faults() []string {
	b.Helper()
	faults := eval[[]string](b, rules)
	command(b, accessibility.Enable, cdp.Empty{})
	tree := command(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	seen := 0
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		seen++
		role, name := strings.Trim(string(node.Role.Value), `"`), ""
		if node.Name != nil {
			name = strings.Trim(string(node.Name.Value), `"`)
		}
		if slices.Contains(named, role) && strings.TrimSpace(name) == "" {
			faults = append(faults, fmt.Sprintf("a screen reader has no name for a %s", role))
		}
	}
	if seen < 10 {
		faults = append(faults, fmt.Sprintf("a screen reader finds only %d things", seen))
	}
	command(b, accessibility.Disable, cdp.Empty{})
	slices.Sort(faults)
	return slices.Compact(faults)
}

// visited are all pages, with something on each.
var visited = []string{
	"/", "/nodes", "/nodes?state=Overcommitted&sort=-over", "/node?name=gpu-node-0003", "/node?name=nobody", "/pending", "/pending?reason=gated", "/fit?gpus=4&pods=3", "/fit?gpus=0",
}

// TestPagesAreAccessible in light and dark, on a screen and on a phone.
func TestPagesAreAccessible(t *testing.T) {
	w := synthetic(60)
	b := open(t, show(w).serve(t, serve.Options{}))
	b.expected = []string{"status of 404", "status of 400"} // two of the pages are refusals
	for _, path := range visited {
		for _, width := range []int64{1280, 375} {
			b.size(width, 800)
			b.visit(path)
			for _, scheme := range []string{"light", "dark"} {
				b.scheme(scheme)
				for _, fault := range b.faults() {
					t.Errorf("%s, %d wide, %s: %s", path, width, scheme, fault)
				}
			}
		}
	}
}

// TestStaleIsAccessible too: the red has to be read.
func TestStaleIsAccessible(t *testing.T) {
	c := show(synthetic(5))
	c.alter(stale)
	b := open(t, c.serve(t, serve.Options{}))
	b.visit("/")
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, fault := range b.faults() {
			t.Errorf("%s: %s", scheme, fault)
		}
		b.shot(scheme)
	}
}

// TestKeysReachEverything: with Tab alone one gets to each link, control and drawing,
// sees where one is, and comes out again.
func TestKeysReachEverything(t *testing.T) {
	b := open(t, show(synthetic(60)).serve(t, serve.Options{}))
	for _, path := range []string{"/", "/nodes?contains=1", "/fit", "/pending?reason=gated"} {
		b.visit(path)
		want := eval[int](b, `[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, [tabindex="0"]')].filter(e => e.checkVisibility()).length`)
		b.run(chromedp.Evaluate[chromedp.Void](`window.reached = new Set(); document.activeElement.blur()`))
		for step := range want + 5 {
			b.run(chromedp.KeyEvent(kb.Tab))
			at := eval[struct {
				Is       string `json:"is"`
				Outlined bool   `json:"outlined"`
				Out      bool   `json:"out"`
			}](b, `(() => {
				const e = document.activeElement, s = getComputedStyle(e);
				if (e === document.body) return {out: true};
				reached.add(e);
				return {is: e.outerHTML.slice(0, 120), outlined: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2};
			})()`)
			if at.Out {
				break
			}
			if !at.Outlined {
				t.Errorf("%s, step %d: nothing shows that one is at %s", path, step, at.Is)
			}
		}
		if got := eval[int](b, `reached.size`); got != want || want < 8 {
			t.Errorf("%s: %d of %d are reached", path, got, want)
		}
	}
}

// TestTheRulesNotice what they are for: each fault is planted once.
func TestTheRulesNotice(t *testing.T) {
	b := open(t, show(synthetic(60)).serve(t, serve.Options{}))
	for plant, want := range map[string]string{
		`document.documentElement.lang = ''`:                                                                                     "no language",
		`document.title = ' '`:                                                                                                   "no title",
		`document.querySelector('h2').outerHTML = '<h4>x</h4>'`:                                                                  "a level of headings",
		`document.querySelector('label').remove()`:                                                                               "a control without a label",
		`document.querySelector('label').htmlFor = 'nothing'`:                                                                    "for of nothing",
		`document.querySelector('main a').textContent = ''`:                                                                      "without a name",
		`document.querySelector('.bar').removeAttribute('aria-label')`:                                                           "an image without a name",
		`document.querySelectorAll('section')[1].id = 'main'`:                                                                    "the same id twice",
		`document.querySelector('thead').remove()`:                                                                               "a table without a head",
		`document.querySelector('tbody tr').append(document.createElement('td'))`:                                                "columns",
		`document.querySelector('.pages .soft').style.color = '#aaa'`:                                                            "contrast",
		`document.querySelector('tbody td').style.color = '#888'`:                                                                "contrast",
		`document.querySelector('.bar .used').style.fill = '#ddd'`:                                                               "of 3",
		`document.querySelector('[data-legend] rect').style.fill = '#fff'`:                                                       "of 3",
		`document.querySelector('main').style.width = '3000px'`:                                                                  "wide on a screen",
		`document.querySelector('.scroll').style.width = '200px'; document.querySelector('.scroll').removeAttribute('tabindex')`: "keys cannot scroll it",
		`document.querySelector('[role=option]').remove()`:                                                                       "of nothing",
		`document.querySelector('[role=listbox]').removeAttribute('aria-label')`:                                                 "no name for a listbox",
		`document.querySelector('main a').tabIndex = 4`:                                                                          "an order of its own",
		`document.querySelector('table').setAttribute('aria-hidden', 'true')`:                                                    "hidden, and yet reached",
	} {
		b.visit("/nodes")
		if before := b.faults(); len(before) > 0 {
			t.Fatalf("before anything is planted: %q", before)
		}
		b.run(chromedp.Evaluate[chromedp.Void](plant + `; undefined`))
		if after := b.faults(); !slices.ContainsFunc(after, func(f string) bool { return strings.Contains(f, want) }) {
			t.Errorf("%s goes unnoticed: %q", plant, after)
		}
	}
}
