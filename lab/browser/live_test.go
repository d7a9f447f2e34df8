package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// TestThePageUpdatesItself, within one question to the server and without being loaded
// again; what has the focus keeps it. While nothing changes it takes nothing but a 304.
func TestThePageUpdatesItself(t *testing.T) {
	w := synthetic(60)
	c := show(w)
	b := open(t, c.serve(t, serve.Options{}))
	b.visit("/")
	b.run(chromedp.Evaluate[chromedp.Void](`window.same = true; document.querySelector('#waiting a').focus(); undefined`))
	b.until("a first question", `performance.getEntriesByType('resource').some(e => e.name.endsWith('/snapshot') && e.responseEnd)`)
	w.Observed.Pods = "48300"
	w.Pods = append(w.Pods, gpuPod("a-new-team", "huge", "gpu-node-0001", 5), &count.Pod{Key: "x/waits", Requests: count.Amounts{{Resource: count.NVIDIA, Value: 1000}}, Wait: count.Unschedulable})
	c.change(w)
	sum := c.snapshot().Of(count.NVIDIA)
	b.until("the new total", fmt.Sprintf(`document.querySelector('#requested').textContent.replace(',', '') === '%d'`, sum.Requested))
	b.until("the new cells", fmt.Sprintf(`[...document.querySelectorAll('[data-cells] path.over')].reduce((n, p) => n + p.getAttribute('d').split('M').length - 1, 0) === %d`, sum.Overcommitted))
	b.checkCells(c.snapshot().Rows)
	if got := b.number("#pending"); got != sum.Pending.Devices {
		t.Errorf("pending %d, want %d", got, sum.Pending.Devices)
	}
	if !eval[bool](b, `window.same === true && document.activeElement.matches('#waiting a')`) {
		t.Error("the page was loaded again, or the focus is lost")
	}
	// Stale comes and goes the same way, and its age goes on by itself.
	c.alter(stale)
	b.until("the word that it is stale", `document.querySelector('#stale .alarm')?.textContent.includes('nothing is heard on the watch of pods')`)
	if got := eval[string](b, `document.querySelector('[data-age]').textContent`); got != ", 10 min old" {
		t.Errorf("its age is %q", got)
	}
	c.alter(func(v *api.View) { v.Stale = nil })
	b.until("fresh again", `!document.querySelector('#stale .alarm')`)
	b.mu.Lock()
	b.requests = nil
	b.mu.Unlock()
	ask := `document.dispatchEvent(new Event('visibilitychange')); undefined`
	b.run(chromedp.Evaluate[chromedp.Void](ask))
	b.until("another question", `performance.getEntriesByType('resource').filter(e => e.name.endsWith('/snapshot')).length > 3`)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, request := range b.requests {
		if !strings.HasSuffix(request, "/api/v1/snapshot") {
			t.Errorf("nothing has changed, and it asks for %s", request)
		}
	}
}

// hold presses with the mouse on the upper left of what a selector finds, and returns how to
// let go of it.
func (b *tab) hold(selector string) (release func()) {
	b.Helper()
	x, y := b.corner(selector)
	event := func(what input.DispatchMouseEventType) {
		b.run(chromedp.MouseEvent(what, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	}
	event(chromedp.MousePressed)
	return func() { event(chromedp.MouseReleased) }
}

// clock stops what the page does a tenth of a second after a press, or five seconds after
// its begin or after a question. The function it returns does what is due by then.
func (b *tab) clock() (pass func(ms int)) {
	b.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](`window.due = {100: [], 5000: []}; const real = setTimeout; window.setTimeout = (f, ms, ...rest) => due[ms] ? due[ms].push(() => f(...rest)) : real(f, ms, ...rest); undefined`))
	return func(ms int) {
		b.Helper()
		b.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`due[%d].splice(0).forEach(f => f()); undefined`, ms)))
		b.frame()
	}
}

// TestWhatIsPressedStays: what comes while the mouse is held down is shown when it is not,
// so that the click is one on what was there.
func TestWhatIsPressedStays(t *testing.T) {
	w := synthetic(60)
	c := show(w)
	b := open(t, c.serve(t, serve.Options{}))
	const link = `#rows tbody a`
	first := func() string { return eval[string](b, fmt.Sprintf(`document.querySelector(%q).textContent`, link)) }
	same := func(before string) {
		t.Helper()
		if got := first(); got != before {
			t.Errorf("%s became %s while the mouse was held down", before, got)
		}
	}
	// news brings a node that is the first by name, and waits until the page has it, which
	// still shows what it did.
	news := func(name string) {
		t.Helper()
		before := first()
		w.Nodes = append(w.Nodes, &count.Node{
			Name: name, Allocatable: count.Amounts{{Resource: count.NVIDIA, Value: 8}}, Capacity: count.Amounts{{Resource: count.NVIDIA, Value: 8}},
		})
		w.Observed.Nodes += "0"
		c.change(w)
		b.run(chromedp.Evaluate[chromedp.Void](`performance.clearResourceTimings(); document.dispatchEvent(new Event('visibilitychange')); undefined`))
		b.until("a copy of the page", `performance.getEntriesByType('resource').some(e => e.name === location.href && e.responseEnd)`)
		b.frame()
		same(before)
	}
	shown := func(name string) {
		t.Helper()
		b.until("the row of "+name+", and its cells, above it", fmt.Sprintf(
			`document.querySelector(%q).textContent === '%s' && [...document.querySelectorAll('[data-cells] h3 span')].at(-1).textContent.startsWith(' %d node')`, link, name, len(w.Nodes)-60))
	}
	b.size(1280, 1600) // what is pressed on is in sight
	b.visit("/nodes")
	b.until("a first question", `performance.getEntriesByType('resource').some(e => e.name.endsWith('/snapshot') && e.responseEnd)`)
	pass := b.clock()
	release := b.hold("h1")
	was := first()
	news("c-node")
	release()
	release = b.hold("h1") // before the first press is over
	pass(100)
	same(was)
	release()
	pass(100)
	shown("c-node")

	release = b.hold("h1")
	news("b-node")
	pass(5000)
	shown("b-node") // though the mouse is still held down
	release()
	pass(100)

	release = b.hold(link)
	news("a-node")
	release()
	b.until("the page of the node that was pressed on", `document.querySelector('h1')?.textContent === 'Node b-node'`)
}

// TestACellThatIsPressedStays where it is, however wide the field becomes meanwhile.
func TestACellThatIsPressedStays(t *testing.T) {
	c := show(synthetic(60))
	b := open(t, c.serve(t, serve.Options{}))
	b.visit("/")
	b.clock()
	row := api.Selection{Model: "NVIDIA-A100-SXM4-40GB"}.Rows(c.snapshot())[0]
	release := b.hold(`[role=listbox]`)
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-cells]').style.width = '70%'; undefined`))
	b.frame()
	release()
	b.until("the page of the node whose cell was pressed on", `document.querySelector('h1')?.textContent === 'Node `+row.Node+`'`)
}
