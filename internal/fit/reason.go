package fit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reason is why a node takes no further copy.
type Reason string

// The reasons, in the order in which they are given: what rules a node out before its
// GPUs are of interest, then GPUs, then what keeps free ones from being had.
const (
	NoDevices          Reason = "no-devices"   // no such GPU
	NotOffered         Reason = "not-offered"  // devices of DRA that no class offers under this name
	OtherModel         Reason = "other-model"  // GPUs of a model that was not asked for
	OtherNode          Reason = "other-node"   // the pod names a node
	NotSelected        Reason = "not-selected" // node selector or required node affinity
	Full               Reason = "full"         // no device is free
	TooFew             Reason = "too-few"      // some are, fewer than a copy takes
	Cordoned           Reason = "cordoned"
	NotReady           Reason = "not-ready"
	Tainted            Reason = "tainted"
	CPU                Reason = "cpu"
	Memory             Reason = "memory"
	OtherResource      Reason = "resource" // ephemeral storage, huge pages, another device
	Pods               Reason = "pods"     // as many pods as the node takes
	HostPort           Reason = "host-port"
	PodAffinity        Reason = "pod-affinity"
	PodAntiAffinity    Reason = "pod-anti-affinity"
	OthersAntiAffinity Reason = "anti-affinity-of-others"
	Spread             Reason = "topology-spread"
)

// Reasons lists all of them in order.
var Reasons = []Reason{
	NoDevices, NotOffered, OtherModel, OtherNode, NotSelected, Full, TooFew, Cordoned, NotReady, Tainted,
	CPU, Memory, OtherResource, Pods, HostPort, PodAffinity, PodAntiAffinity, OthersAntiAffinity, Spread,
}

// obstacle is one thing that keeps a copy from a node.
type obstacle struct {
	reason Reason
	// about tells obstacles of one reason apart: a taint, a resource, a label.
	about string
	// phrase goes on from "8 free, but". Of a resource it is followed by the numbers.
	phrase     string
	left, want int64
	// number writes left and want; nil if there are none.
	number func(int64) string
}

func (o *obstacle) String() string {
	if o.number == nil {
		return o.phrase
	}
	return fmt.Sprintf("%s: %s left, %s wanted", o.phrase, o.number(o.left), o.number(o.want))
}

// atMost is String for several nodes, of which this one has most left.
func (o *obstacle) atMost() string {
	if o.number == nil {
		return o.phrase
	}
	return fmt.Sprintf("%s: at most %s left, %s wanted", o.phrase, o.number(o.left), o.number(o.want))
}

// message is what is said of one node.
func (p *place) message(devices int64) string {
	if len(p.obstacles) == 0 {
		return ""
	}
	first := &p.obstacles[0]
	free := fmt.Sprintf("%d free", p.left())
	if p.copies > 0 {
		free += " after " + plural(p.copies, "copy", "copies")
	}
	switch first.reason {
	case NoDevices:
		return "no " + first.about
	case Full:
		return fmt.Sprintf("none of %d free%s", p.allocatable, strings.TrimPrefix(free, "0 free"))
	case TooFew:
		return fmt.Sprintf("%s, %d wanted", free, first.want)
	}
	var phrases []string
	for i := range p.obstacles {
		phrases = append(phrases, p.obstacles[i].String())
	}
	if devices == 0 {
		return strings.Join(phrases, "; ")
	}
	return free + ", but " + strings.Join(phrases, "; ")
}

// sumUp groups the places that refuse by the first thing that keeps a copy away.
func sumUp(places []*place, devices int64) []Refusal {
	type key struct {
		reason Reason
		about  string
	}
	groups := make(map[key][]*place)
	for _, p := range places {
		if len(p.obstacles) > 0 {
			k := key{p.obstacles[0].reason, p.obstacles[0].about}
			groups[k] = append(groups[k], p)
		}
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b key) int {
		return cmp.Or(cmp.Compare(slices.Index(Reasons, a.reason), slices.Index(Reasons, b.reason)), strings.Compare(a.about, b.about))
	})
	// What could be had but for one thing is what people can do something about.
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Compare(rank(a.reason), rank(b.reason)) })
	out := []Refusal{}
	for _, k := range keys {
		out = append(out, refusal(k.reason, groups[k], devices))
	}
	return out
}

// rank puts what is free but cannot be had first, what is in use next, and what was
// never asked for last.
func rank(r Reason) int {
	switch r {
	case Full, TooFew:
		return 1
	case NotOffered, OtherModel, OtherNode, NotSelected:
		return 2
	case NoDevices:
		return 3
	}
	return 0
}

func refusal(reason Reason, places []*place, devices int64) Refusal {
	r := Refusal{Reason: reason}
	most := &places[0].obstacles[0]
	others := 0
	for _, p := range places {
		// Places are sorted; a node may be in two, with GPUs of two sources.
		if len(r.Nodes) == 0 || r.Nodes[len(r.Nodes)-1] != p.node {
			r.Nodes = append(r.Nodes, p.node)
		}
		r.Free = add(r.Free, p.left())
		if o := &p.obstacles[0]; o.left > most.left {
			most = o
		}
		if len(p.obstacles) > 1 {
			others++
		}
	}
	nodes := plural(int64(len(r.Nodes)), "node", "nodes")
	where := fmt.Sprintf("%d free on %s", r.Free, nodes)
	if devices == 0 {
		where = nodes
	}
	switch reason {
	case NoDevices:
		r.Message = nodes + " without " + most.about
	case Full:
		r.Message = "none free on " + nodes
	case TooFew:
		r.Message = fmt.Sprintf("%d free on %s, none has %d", r.Free, nodes, most.want)
	default:
		r.Message = where + ", but " + most.atMost()
		if others > 0 {
			r.Message += fmt.Sprintf(" (and more is in the way on %s)", plural(int64(others), "node", "nodes"))
		}
	}
	return r
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
