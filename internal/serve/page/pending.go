package page

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// pending are the pods that wait, and why.
type pending struct {
	Resource, Namespace, Reason string
	Resources                   []link
	Namespaces                  []string
	Sum                         count.Summary
	Pods                        []waitingPod
	Pager                       pager
	Filtered                    bool
}

// waitingPod is a pod without a node.
type waitingPod struct {
	*count.Pod
	Models  []string // that it waits for one of
	Devices string   // by devices alone
	Address string   // of the page that says more of that
}

func pendingPage(v api.View, p *api.Parameters) Page {
	resource := resourceOf(v.Snapshot, p.Text("resource"))
	d := pending{
		Resource: resource, Namespace: p.Text("namespace"), Reason: p.Word("reason", api.Reasons...),
		Resources: resourceLinks(v.Snapshot, "pending", resource), Sum: v.Snapshot.Of(resource),
	}
	d.Filtered = d.Namespace != "" || d.Reason != ""
	for _, share := range d.Sum.Namespaces {
		if share.Pending > 0 && len(d.Namespaces) < perPage {
			d.Namespaces = append(d.Namespaces, share.Name)
		}
	}
	pods := api.PodSelection{Pending: true, Namespace: d.Namespace, Reason: d.Reason}.Pods(v.Pods)
	pods = slices.DeleteFunc(pods, func(p *count.Pod) bool { return !asks(p, resource) })
	pods, d.Pager = turn(p, pods, func(page string) string {
		return address("pending", url.Values{"resource": {p.Text("resource")}, "namespace": {d.Namespace}, "reason": {d.Reason}, "page": {page}})
	})
	for _, pod := range pods {
		devices := pod.Requests.Of(resource)
		row := waitingPod{Pod: pod, Models: pod.Models(resource)}
		asks := url.Values{"resource": {resource}, "gpus": {strconv.FormatInt(devices, 10)}}
		if len(row.Models) == 1 {
			asks.Set("model", row.Models[0])
		}
		row.Address = address("fit", asks)
		if v.Snapshot.NodesKnown {
			row.Devices = alone(d.Sum, row.Models, devices)
		}
		d.Pods = append(d.Pods, row)
	}
	return Page{Body: d.body()}
}

// implicitPrefix is what the resources of device classes are called that have no other
// name. They are in the sums of what the class counts as, so a pod that asks for one is
// shown with every resource.
const implicitPrefix = "deviceclass.resource.kubernetes.io/"

func asks(p *count.Pod, resource string) bool {
	return slices.ContainsFunc(p.Requests, func(a count.Amount) bool {
		return a.Resource == resource || strings.HasPrefix(a.Resource, implicitPrefix)
	})
}

// alone says whether a pod would fit if devices, of one of these models, were all that
// counts.
func alone(sum count.Summary, models []string, devices int64) string {
	largest, there := sum.Fit.LargestFree, true
	if len(models) > 0 {
		largest, there = 0, false
		for _, m := range sum.Models {
			if slices.Contains(models, m.Name) {
				largest, there = max(largest, m.Fit.LargestFree), true
			}
		}
	}
	switch {
	case devices <= 0:
		return ""
	case !there:
		return "no node has the model"
	case devices <= largest:
		return "there is room"
	case largest == 0:
		return "nothing is usable"
	}
	return "at most " + Number(largest) + " on one node"
}

func (d pending) body() g.Node {
	return g.Group{
		chips(d.Resources),
		h.Div(h.ID("why"), Live, tiles(d.tiles())),
		h.Div(h.Class("columns"),
			liveCard("shapes", "How much they ask for", d.shapes()),
			card("words", "What the reasons mean", meanings())),
		d.filter(),
		liveCard("pods", Plural(d.Pager.Total, "pod")+" without a node"+either(d.Filtered, ", of those asked for", ""),
			wide("Pods",
				heads(head("Namespace"), head("Pod"), head("Asks for"), head("Model"), head("Why it waits"), head("By devices alone"), numberHead("Priority")),
				h.TBody(g.Map(d.Pods, waitingPod.draw), g.If(len(d.Pods) == 0, remark(7, "There is none.")))),
			d.Pager.draw()),
	}
}

// tiles are all that waits, and each reason.
func (d pending) tiles() []tile {
	all := []tile{pendingTile(d.Sum)}
	for _, r := range d.Sum.Pending.Reasons {
		all = append(all, tile{Label: words(r.Wait), Number: r.Devices, Small: Plural(r.Pods, "pod")})
	}
	return all
}

func (d pending) shapes() g.Node {
	return h.Table(
		heads(numberHead("Devices each"), numberHead("Pods")),
		h.TBody(g.Map(d.Sum.Pending.Shapes, func(s count.Shape) g.Node {
			return h.Tr(numberCells(s.Devices), plainCell(Number(s.Pods)))
		})))
}

func meanings() g.Node {
	all := []struct {
		wait    count.Wait
		meaning string
	}{
		{count.Unschedulable, "The scheduler has tried. By devices alone there may be room; then something else is missing: processors, memory, affinity, a model."},
		{count.Untried, "In the queue, or their scheduler does not say."},
		{count.Gated, "A scheduling gate keeps the scheduler from trying."},
		{count.Nominated, "To make room for them on a node that is chosen."},
	}
	var items g.Group
	for _, m := range all {
		items = append(items, h.Dt(g.Text(words(m.wait))), h.Dd(g.Text(m.meaning)))
	}
	return h.Dl(h.Class("words"), items)
}

func (d pending) filter() g.Node {
	var reasons []choice
	for _, r := range d.Sum.Pending.Reasons {
		reasons = append(reasons, choice{r.Wait.String(), words(r.Wait)})
	}
	return filter("./pending",
		hidden("resource", d.Resource),
		selection("namespace", "Namespace", anyOf(d.Namespace, choicesOf(d.Namespaces))),
		selection("reason", "Reason", anyOf(d.Reason, reasons)),
		h.Button(g.Text("Show")),
		g.If(d.Filtered, to(address("pending", url.Values{"resource": {d.Resource}}), "Show all")))
}

func (p waitingPod) draw() g.Node {
	return h.Tr(namespaceAndName(p.Pod), textCell(asked(p.Pod)), modelCell(p.Models), textCell(words(p.Wait)),
		h.Td(g.If(p.Devices != "", to(p.Address, p.Devices))), plainCell(strconv.Itoa(int(p.Priority))))
}

func modelCell(models []string) g.Node {
	if len(models) == 0 {
		return h.Td(h.Span(h.Class("soft"), g.Text("any")))
	}
	return textCell(strings.Join(models, ", "))
}
