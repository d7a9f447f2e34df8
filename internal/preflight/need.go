// Package preflight knows which permissions the controller needs, asks the API
// server which of them it has, and says what to do about the others.
//
// A permission that is missing is quiet: caches wait, watches are refused again and
// again, a write fails now and then. The API server knows the answer beforehand, for
// whatever authorizer it uses, so it is asked and not its RBAC objects, which often
// nobody may read.
package preflight

import (
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/discover"
)

// Need is something the controller does, and the permission that takes.
type Need struct {
	Group       string
	Resource    string
	Subresource string
	Namespace   string // "" is all of them, or a resource that is in none
	Name        string // the only object it is about, "" for any
	Verbs       []string
	For         string // what it is for, as in "to …"
	Optional    string // what is lost without it, "" if the controller does not work then
	Instead     string // the flag that does without, "" if there is none
}

// Options say what the controller is to do.
type Options struct {
	Namespace      string // of the published ConfigMaps, the Lease and the Events
	WatchNamespace string // of the pods that are counted, "" for all
	Nodes          bool   // nodes are watched
	DRA            bool   // devices of DRA drivers are counted
	Lease          string // the Lease that replicas contend for, "" for none
	Events         bool   // Events are written
	Authentication bool   // whoever reads over HTTP has to be known and allowed to
}

var listAndWatch = []string{"list", "watch"}

// Needs returns what these options take, and nothing that is not used: what stands
// here is what the manifests grant.
func (o Options) Needs() []Need {
	needs := []Need{{
		Resource: "pods", Namespace: o.WatchNamespace, Verbs: listAndWatch, For: "count what they request",
	}}
	if o.Nodes {
		needs = append(needs, Need{
			Resource: "nodes", Verbs: listAndWatch, For: "know what they have", Instead: "--watch-nodes=false",
		})
	}
	if o.DRA {
		// Devices are claimed in every namespace, so claims are read in all of them
		// whatever pods are counted.
		for _, resource := range discover.DRAResources {
			needs = append(needs, Need{
				Group: "resource.k8s.io", Resource: resource, Verbs: listAndWatch,
				For: "count devices of DRA drivers", Optional: "GPUs of DRA drivers are not counted",
			})
		}
	}
	needs = append(needs, o.configMaps()...)
	if o.Lease != "" {
		needs = append(needs, o.lease()...)
	}
	if o.Events {
		needs = append(needs, o.events()...)
	}
	if o.Authentication {
		needs = append(needs,
			Need{Group: "authentication.k8s.io", Resource: "tokenreviews", Verbs: []string{"create"}, For: "know who reads over HTTP"},
			Need{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verbs: []string{"create"}, For: "know who may read over HTTP"},
		)
	}
	return needs
}

func (o Options) configMaps() []Need {
	need := func(what string, verbs ...string) Need {
		return Need{Resource: "configmaps", Namespace: o.Namespace, Verbs: verbs, For: what}
	}
	return []Need{
		need("see what is published", listAndWatch...),
		need("find one that has lost its labels", "get"),
		need("publish", "create", "update"),
		need("remove what is published no more", "delete"),
	}
}

// lease: a request to create an object does not name it, so RBAC cannot either.
func (o Options) lease() []Need {
	need := func(name string, verbs ...string) Need {
		return Need{
			Group: "coordination.k8s.io", Resource: "leases", Namespace: o.Namespace, Name: name, Verbs: verbs,
			For: "agree on which replica writes", Instead: "--leader-elect=false",
		}
	}
	return []Need{need(o.Lease, "get", "update"), need("", "create")}
}

// events: a node is in no namespace, and the Events of such objects are in default.
// Equal Events would be counted up with a patch, but there are none.
func (o Options) events() []Need {
	need := func(namespace, what string) Need {
		return Need{
			Group: "events.k8s.io", Resource: "events", Namespace: namespace, Verbs: []string{"create"},
			For: what, Optional: "these Events are not written", Instead: "--events=false",
		}
	}
	needs := []Need{need(o.Namespace, "report how publishing goes")}
	if o.Nodes && o.Namespace != "default" {
		needs = append(needs, need("default", "report nodes that are overcommitted"))
	}
	return needs
}

// object is the resource as kubectl writes it.
func (n Need) object() string {
	s := n.Resource
	if n.Subresource != "" {
		s += "/" + n.Subresource
	}
	if n.Group != "" {
		s += "." + n.Group
	}
	if n.Name != "" {
		s += " named " + n.Name
	}
	return s
}

func (n Need) where() string {
	if n.Namespace == "" {
		return "cluster-wide"
	}
	return "in " + n.Namespace
}

// why is what it is for and what to do without.
func (n Need) why() string {
	why := []string{"to " + n.For}
	if n.Optional != "" {
		why = append(why, "without it "+n.Optional)
	}
	if n.Instead != "" {
		why = append(why, n.Instead+" does without")
	}
	return strings.Join(why, "; ")
}
