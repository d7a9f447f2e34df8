package page

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

// node is one of them, with all its resources and pods.
type node struct {
	Rows     []count.Row
	Pods     []*count.Pod
	MorePods int
	Field    field
}

// maxPodRows is how many pods a node's page has at most. The kubelet takes 110 unless
// told otherwise.
const maxPodRows = 500

func nodePage(v api.View, p *api.Parameters) Page {
	name := p.Text("name")
	var n node
	if name != "" {
		n.Rows, n.Pods = api.Selection{Node: name}.Rows(v.Snapshot), api.PodSelection{Node: name}.Pods(v.Pods)
	}
	if len(n.Rows) == 0 && len(n.Pods) == 0 {
		page := trouble(http.StatusNotFound, "There is no node of this name that has GPUs or on which some are requested.")
		page.Title = "No such node"
		return page
	}
	if len(n.Rows) > 0 {
		n.Field = fieldFor(v.Snapshot, api.Selection{Node: name}, "", len(n.Rows))
		n.Field.Holders = holders(v.Snapshot.Of(n.Rows[0].Resource), here(n.Rows, n.Pods))
	}
	if more := len(n.Pods) - maxPodRows; more > 0 {
		n.Pods, n.MorePods = n.Pods[:maxPodRows], more
	}
	return Page{Title: "Node " + name, Body: n.body()}
}

// here are the namespaces that hold devices on a node.
func here(rows []count.Row, pods []*count.Pod) map[string]bool {
	namespaces := make(map[string]bool)
	for _, holders := range count.Holders(rows, pods) {
		for _, holder := range holders {
			namespaces[holder.Namespace] = true
		}
	}
	return namespaces
}

func (n node) body() g.Node {
	return g.Group{
		h.Div(h.ID("node"), Live, n.devices()),
		g.If(len(n.Rows) > 0, card("field", "By who holds them", n.Field.draw())),
		liveCard("pods", "Pods that hold devices here", n.pods(),
			g.If(n.MorePods > 0, hint(Plural(n.MorePods, "more pod")+" not shown."))),
	}
}

func (n node) devices() g.Node {
	if len(n.Rows) == 0 {
		return h.P(h.Class("note"), g.Text("No such node is there, or it has no GPUs, but pods that ask for some are bound to it."))
	}
	return h.Section(h.Class("card"), h.H2(g.Text("Devices")),
		wide("Devices",
			heads(head("Resource"), head("Model"), head("State"), numberHead("Capacity"), numberHead("Allocatable"), numberHead("Requested"),
				numberHead("Free"), numberHead("Usable"), numberHead("Over"), head("In use")),
			h.TBody(g.Map(n.Rows, resourceRow))))
}

func resourceRow(r count.Row) g.Node {
	model := to(address("nodes", url.Values{"resource": {r.Resource}, "model": {r.Model}}), r.Model)
	return g.Group{
		h.Tr(rowHead(g.Text(r.Resource), byDRA(r)), h.Td(model, shared(r)), h.Td(states(r.States)),
			numberCells(r.Capacity, r.Allocatable, r.Requested, r.Free, r.UsableFree), badCell(r.Overcommitted), barCell(r.Numbers)),
		g.If(r.Claimed != 0, remark(10, "Of these, "+Number(r.Claimed)+" are charged for pods that hold devices through a claim, in the row of DRA.")),
		g.If(r.Blocked != 0, remark(10, Number(r.Blocked)+" cannot be had, because a device that they are part of, or a part of theirs, is in use.")),
	}
}

func (n node) pods() g.Node {
	if len(n.Pods) == 0 {
		return soft("None.")
	}
	return wide("Pods",
		heads(head("Namespace"), head("Pod"), head("Devices"), numberHead("Priority"), head("State")),
		h.TBody(g.Map(n.Pods, boundPod)))
}

func boundPod(p *count.Pod) g.Node {
	state := g.Text("bound")
	if p.Deleting {
		state = off("being deleted")
	}
	return h.Tr(namespaceAndName(p),
		h.Td(g.Text(asked(p)), g.If(p.Claim() != nil, g.Group{g.Text(" "), off("by claim")})),
		plainCell(strconv.Itoa(int(p.Priority))), h.Td(state))
}

// namespaceAndName are two cells, of which the name says what the row is about.
func namespaceAndName(p *count.Pod) g.Group {
	_, name, _ := strings.Cut(p.Key, "/")
	return g.Group{textCell(p.Namespace()), rowHead(g.Text(name))}
}

// asked is what a pod asks for.
func asked(p *count.Pod) string {
	var all []string
	for _, a := range p.Requests {
		all = append(all, Number(a.Value)+" "+a.Resource)
	}
	return strings.Join(all, ", ")
}
