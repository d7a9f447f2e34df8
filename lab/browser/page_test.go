package browser

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// stale makes a view one of ten minutes ago.
func stale(v *api.View) {
	v.Stale = &api.Stale{Since: time.Now().Add(-10 * time.Minute).UTC(), Reasons: []string{"nothing is heard on the watch of pods"}}
}

// cells counts what is drawn, by kind: rectangles in the paths themselves.
func (b *tab) cells() map[string]int {
	b.Helper()
	counts := eval[map[string]int](b, `(() => {
		const counts = {};
		for (const path of document.querySelectorAll('[data-cells] path'))
			counts[path.classList[0]] = (counts[path.classList[0]] ?? 0) + path.getAttribute('d').split('M').length - 1;
		return counts;
	})()`)
	delete(counts, "hatch")
	return counts
}

// want counts what must be drawn of some rows, from the snapshot alone. Held cells are
// counted together, and then by holder in the legend.
func want(rows []count.Row) (cells map[string]int, nodesShut int) {
	cells = map[string]int{}
	for _, row := range rows {
		cells["held"] += int(row.Requested)
		cells["free"] += int(row.UsableFree)
		cells["shut"] += int(row.Free - row.UsableFree)
		cells["over"] += int(row.Overcommitted)
		cells["lost"] += int(max(0, max(row.Capacity, row.Allocatable)-row.Requested-row.Free))
		if len(row.States) > 0 {
			nodesShut++
		}
	}
	return cells, nodesShut
}

// checkCells compares what is drawn with rows.
func (b *tab) checkCells(rows []count.Row) {
	b.Helper()
	got, drawn := map[string]int{}, b.cells()
	for kind, n := range drawn {
		switch {
		case kind == "hatch2":
		case kind == "other" || kind == "claims" || len(kind) == 2 && kind[0] == 'c':
			got["held"] += n
		default:
			got[kind] += n
		}
	}
	cells, shut := want(rows)
	for kind, n := range cells {
		if n == 0 {
			delete(cells, kind)
		}
	}
	if diff := cmp.Diff(cells, got); diff != "" || drawn["hatch2"] != shut {
		b.Errorf("the cells of %d rows differ (%d nodes are hatched, want %d):\n%s", len(rows), drawn["hatch2"], shut, diff)
	}
}

// number reads what an element says.
func (b *tab) number(selector string) (n int64) {
	b.Helper()
	text := eval[string](b, fmt.Sprintf(`document.querySelector(%q).textContent`, selector))
	if _, err := fmt.Sscan(strings.ReplaceAll(text, ",", ""), &n); err != nil {
		b.Errorf("%s says %q", selector, text)
	}
	return n
}

// TestSizes: at 5, 1,213 and 5,000 nodes the page has the snapshot's numbers and cells.
func TestSizes(t *testing.T) {
	for _, nodes := range []int{5, 1213, 5000} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			w := synthetic(nodes)
			c := show(w)
			b := open(t, c.serve(t, serve.Options{}))
			b.visit("/")
			sum := c.snapshot().Of(count.NVIDIA)
			for selector, n := range map[string]int64{
				"#allocatable": sum.Allocatable, "#requested": sum.Requested, "#usable": sum.UsableFree, "#pending": sum.Pending.Devices, "#overcommitted": sum.Overcommitted,
			} {
				if got := b.number(selector); got != n {
					t.Errorf("%s is %d, want %d", selector, got, n)
				}
			}
			for i, m := range sum.Models {
				row := fmt.Sprintf("#models tbody tr:nth-child(%d) ", i+1)
				wanted := []int64{int64(m.Nodes), m.Allocatable, m.Requested, m.UsableFree, m.Pending}
				for at, n := range wanted {
					if got := b.number(fmt.Sprintf("%s td:nth-of-type(%d)", row, at+1)); got != n {
						t.Errorf("%s, column %d is %d, want %d", m.Name, at, got, n)
					}
				}
				for at, size := range m.Fit.Sizes[:4] {
					if got := b.number(fmt.Sprintf("%s td:nth-of-type(%d)", row, at+7)); got != size.Placeable {
						t.Errorf("%s, pods of %d: %d, want %d", m.Name, size.Devices, got, size.Placeable)
					}
				}
			}
			b.checkCells(c.snapshot().Rows)
			// By holder, from the pods themselves.
			held := map[string]int64{}
			for _, p := range w.Pods {
				if p.Bound() {
					held[p.Namespace()] += p.Requests.Of(count.NVIDIA)
				}
			}
			for name, n := range eval[map[string]string](b, `Object.fromEntries([...document.querySelectorAll('[data-legend] li[data-holder]:not([hidden])')].map(li => [li.dataset.holder, li.querySelector('b').textContent]))`) {
				if fmt.Sprint(held[name]) != strings.ReplaceAll(n, ",", "") {
					t.Errorf("%s holds %d, and the legend says %s", name, held[name], n)
				}
			}
			b.pictures5()
		})
	}
}

// pictures5 keeps the page in light, dark and on a phone.
func (b *tab) pictures5() {
	b.Helper()
	b.shot("light")
	b.scheme("dark")
	b.shot("dark")
	b.size(375, 812)
	b.until("the cells to be as wide as a phone", `document.querySelector('[data-cells] svg').width.baseVal.value < 375`)
	b.shot("phone")
}

// rowNames are the nodes in the table, in its order.
func (b *tab) rowNames() []string {
	b.Helper()
	return eval[[]string](b, `[...document.querySelectorAll('#rows tbody th a')].map(a => a.textContent)`)
}

// TestSortAndFilter, by clicking and choosing as people do; table and cells agree.
func TestSortAndFilter(t *testing.T) {
	c := show(synthetic(1213))
	b := open(t, c.serve(t, serve.Options{}))
	rows := slices.Clone(c.snapshot().Rows)
	b.visit("/nodes")
	b.click(`thead th:nth-child(4) a`) // requested, most first
	slices.SortStableFunc(rows, func(x, y count.Row) int { return int(y.Requested - x.Requested) })
	var names []string
	for _, row := range rows[:100] {
		names = append(names, row.Node)
	}
	if diff := cmp.Diff(names, b.rowNames()); diff != "" {
		t.Errorf("by requested: %s", diff)
	}
	if got := eval[string](b, `document.querySelector('th[aria-sort]').textContent`); got != "Requested ↓" {
		t.Errorf("sorted by %q", got)
	}
	// The first cell that is drawn is of the first node of the first model.
	first := slices.IndexFunc(rows, func(r count.Row) bool { return r.Model == "NVIDIA-A100-SXM4-40GB" })
	if got := eval[string](b, `document.querySelector('[role=option] b').textContent`); got != rows[first].Node {
		t.Errorf("the first cell is of %s, want %s", got, rows[first].Node)
	}
	b.click(`a[rel=next]`)
	if got := b.rowNames(); len(got) != 100 || got[0] != rows[100].Node {
		t.Errorf("the second part begins with %q", got[0])
	}
	b.visit("/nodes")
	b.run(chromedp.SetValue("#state", "Overcommitted"), chromedp.SetValue("#model", "NVIDIA-L40S"), chromedp.SendKeys("#contains", "1"))
	b.click("form.filter button")
	wanted := api.Selection{Resource: count.NVIDIA, Model: "NVIDIA-L40S", State: "Overcommitted", Contains: "1"}.Rows(c.snapshot())
	if got := b.rowNames(); len(wanted) == 0 || len(got) != len(wanted) || got[0] != wanted[0].Node {
		t.Errorf("filtered: %q, want %d", got, len(wanted))
	}
	b.checkCells(wanted)
	b.shot("filtered")
	if got := eval[string](b, `document.querySelector('#state').value + document.querySelector('#contains').value`); got != "Overcommitted1" {
		t.Errorf("the form has forgotten what was chosen: %q", got)
	}
	b.visit("/nodes?contains=nothing-is-called-so")
	if got := eval[string](b, `document.querySelector('[data-note]').textContent`); got != "There is no node to draw." {
		t.Errorf("without nodes: %q", got)
	}
}

// TestANodesPage is a click on its cells away, or a few keys, and has its pods.
func TestANodesPage(t *testing.T) {
	w := synthetic(60)
	c := show(w)
	b := open(t, c.serve(t, serve.Options{}))
	b.visit("/")
	rows := api.Selection{Model: "NVIDIA-A100-SXM4-40GB"}.Rows(c.snapshot())
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector('[role=listbox]').focus(); undefined`), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowLeft))
	if got := eval[string](b, `document.querySelector('[role=option]').textContent`); !strings.HasPrefix(got, rows[1].Node) {
		t.Errorf("the keys lead to %q, want %s", got, rows[1].Node)
	}
	b.shot("cursor")
	b.size(1100, 900) // all is drawn anew, and the cursor stays
	b.until("narrower cells", `document.querySelector('[data-cells] svg').width.baseVal.value < 1100`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until("the node's page", `document.querySelector('h1')?.textContent === 'Node `+rows[1].Node+`'`)
	b.drawn()
	var want []string
	for _, p := range (api.PodSelection{Node: rows[1].Node}).Pods(w.Pods) {
		want = append(want, p.Key)
	}
	got := eval[[]string](b, `[...document.querySelectorAll('#pods tbody tr')].map(tr => tr.cells[0].textContent + '/' + tr.cells[1].textContent)`)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Error(diff)
	}
	b.checkCells(rows[1:2])
	b.shot("node")
	b.visit("/")
	b.leave("a click on a cell", chromedp.MouseClickXY(b.corner(`[role=listbox]`)))
	b.until("the first node's page", `document.querySelector('h1')?.textContent === 'Node `+rows[0].Node+`'`)
}

// TestTheFitForm answers as the snapshot does.
func TestTheFitForm(t *testing.T) {
	c := show(synthetic(60))
	b := open(t, c.serve(t, serve.Options{}))
	b.visit("/fit")
	for _, ask := range []count.Ask{
		{Resource: count.NVIDIA, Devices: 4, Pods: 3}, {Resource: count.NVIDIA, Devices: 8, Pods: 50}, {Resource: count.NVIDIA, Model: "Tesla-T4", Devices: 2, Pods: 2},
	} {
		b.run(chromedp.SetValue("#gpus", fmt.Sprint(ask.Devices)), chromedp.SetValue("#pods", fmt.Sprint(ask.Pods)), chromedp.SetValue("#model", ask.Model))
		b.click("form.filter button")
		p := c.snapshot().Place(ask)
		said := eval[string](b, `document.querySelector('.answer').textContent.replace(/\s+/g, ' ').trim()`)
		verdict := map[bool]string{true: "Yes.", false: "No."}[p.Placeable >= ask.Pods]
		if !strings.HasPrefix(said, fmt.Sprintf("%s %d pod", verdict, p.Placeable)) {
			t.Errorf("%+v: %q, want %d", ask, said, p.Placeable)
		}
		nodes := eval[[]string](b, `[...document.querySelectorAll('#places-title ~ table tbody th')].map(th => th.textContent)`)
		for i, place := range p.Places {
			if i < len(nodes) && nodes[i] != place.Node || len(nodes) != len(p.Places) {
				t.Errorf("%+v: on %q, want %+v", ask, nodes, p.Places)
				break
			}
		}
	}
	b.shot("answer")
}

// TestHostileNames are shown as they are, as text: of nodes, models, namespaces, pods.
func TestHostileNames(t *testing.T) {
	long := strings.Repeat("x", 60) + "end"
	names := []string{`<b>bold</b>`, `"quoted'`, `<script>alert(1)</script>`, `a&lt;b`, long}
	w := count.World{NodesKnown: true, Observed: count.Observed{Pods: "1", Nodes: "1"}}
	eight := count.Amounts{{Resource: count.NVIDIA, Value: 8}}
	for _, name := range names {
		w.Nodes = append(w.Nodes, &count.Node{Name: name, Capacity: eight, Allocatable: eight, Labels: []count.Label{{Key: "nvidia.com/gpu.product", Value: name}}})
		w.Pods = append(w.Pods, gpuPod(strings.ReplaceAll(name, "/", "-"), name, name, 3), &count.Pod{Key: strings.ReplaceAll(name, "/", "-") + "/" + name, Requests: eight, Wait: count.Gated})
	}
	c := show(w)
	b := open(t, c.serve(t, serve.Options{}))
	b.size(375, 812)
	for path, inside := range map[string]string{
		"/": "#models", "/nodes": "#rows", "/pending": "#pods", "/fit?gpus=1&pods=9": "#model",
	} {
		b.visit(path)
		text := eval[string](b, fmt.Sprintf(`document.querySelector(%q).textContent`, inside))
		for _, name := range names {
			if !strings.Contains(text, name) {
				t.Errorf("%s: %q is not in\n%s", path, name, text)
			}
		}
		if path == "/" {
			legend := eval[string](b, `document.querySelector('[data-legend]').textContent + [...document.querySelectorAll('.cells h3, [role=option]')].map(e => e.textContent)`)
			for _, name := range names {
				if !strings.Contains(legend, name) {
					t.Errorf("the field lacks %q:\n%s", name, legend)
				}
			}
		}
		if n := eval[int](b, `document.querySelectorAll('main b:not([data-legend] b):not([role=option] b), main script').length`); n > 0 {
			t.Errorf("%s: names have become %d elements", path, n)
		}
		for _, fault := range b.faults() {
			t.Errorf("%s: %s", path, fault)
		}
	}
	for i, name := range names {
		b.visit("/node?name=" + url.QueryEscape(name))
		if got := eval[string](b, `document.querySelector('h1').textContent`); got != "Node "+name {
			t.Errorf("the heading is %q", got)
		}
		if i == 0 {
			b.shot("bold")
		}
	}
}
