package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
)

type pendingData struct {
	Resource, Namespace, Reason string
	Resources                   []link
	Namespaces                  []string
	Reasons                     []reason
	Sum                         count.Summary
	Pods                        []podRow
	Pager                       pager
	Filtered                    bool
}

func pending(_ *Page, v api.View, p *api.Parameters) any {
	resource := resourceOf(v.Snapshot, p.Text("resource"))
	d := pendingData{
		Resource: resource, Namespace: p.Text("namespace"), Reason: p.Word("reason", api.Reasons...),
		Resources: resources(v.Snapshot, "pending", resource), Sum: v.Snapshot.Of(resource),
	}
	for _, share := range d.Sum.Namespaces {
		if share.Pending > 0 && len(d.Namespaces) < perPage {
			d.Namespaces = append(d.Namespaces, share.Name)
		}
	}
	for _, r := range d.Sum.Pending.Reasons {
		d.Reasons = append(d.Reasons, reason{Reason: r, Words: words(r.Wait)})
	}
	pods := api.PodSelection{Pending: true, Namespace: d.Namespace, Reason: d.Reason}.Pods(v.Pods)
	pods = slices.DeleteFunc(pods, func(p *count.Pod) bool { return !asks(p, resource) })
	d.Filtered = d.Namespace != "" || d.Reason != ""
	shown, pager := turn(p, pods, func(page string) string {
		return address("pending", url.Values{"resource": {p.Text("resource")}, "namespace": {d.Namespace}, "reason": {d.Reason}, "page": {page}})
	})
	d.Pager = pager
	for _, pod := range shown {
		row := podRowOf(pod)
		row.Why = words(pod.Wait)
		if v.Snapshot.NodesKnown {
			row.Devices = alone(d.Sum.Fit, pod.Requests.Of(resource))
		}
		row.Address = address("fit", url.Values{"resource": {resource}, "gpus": {fmt.Sprint(pod.Requests.Of(resource))}})
		d.Pods = append(d.Pods, row)
	}
	return d
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

// alone says whether a pod would fit if devices were all that counts.
func alone(f count.Fit, devices int64) string {
	switch {
	case devices <= 0:
		return ""
	case devices <= f.LargestFree:
		return "there is room"
	case f.LargestFree == 0:
		return "nothing is usable"
	}
	return "at most " + number(f.LargestFree) + " on one node"
}

type fitData struct {
	count.Ask
	count.Placement
	Resources []string
	Models    []string
	Fits      bool
	Shown     []place
	More      int
}

type place struct {
	count.Place
	Address string
}

func fit(page *Page, v api.View, p *api.Parameters) any {
	if !v.Snapshot.NodesKnown {
		page.Status = http.StatusNotImplemented
		return trouble{"There is no answer to that here:", []string{api.NodesUnknown}}
	}
	a := api.ReadAsk(p)
	if p.Text("resource") == "" {
		a.Resource = resourceOf(v.Snapshot, "")
	}
	d := fitData{Ask: a}
	if p.Err() != nil {
		return d
	}
	d.Placement = v.Snapshot.Place(a)
	d.Fits = d.Placeable >= a.Pods
	for _, sum := range v.Snapshot.Summaries {
		d.Resources = append(d.Resources, sum.Resource)
		for _, m := range sum.Models {
			if !slices.Contains(d.Models, m.Name) && len(d.Models) < perPage {
				d.Models = append(d.Models, m.Name)
			}
		}
	}
	slices.Sort(d.Models)
	for i, at := range d.Places {
		if i == perPage {
			d.More = len(d.Places) - perPage
			break
		}
		d.Shown = append(d.Shown, place{at, address("node", url.Values{"name": {at.Node}})})
	}
	return d
}
