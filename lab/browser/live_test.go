package browser

import (
	"fmt"
	"strings"
	"testing"

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
