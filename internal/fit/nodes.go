package fit

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// fillNodes places copies of a template, and says how many there is room for.
func (c *cluster) fillNodes(q Question, t *template) ([]*place, int64) {
	x := newTopology(c, t)
	var places, open []*place
	for _, n := range c.nodes {
		p := c.placeOf(q, t, n)
		places = append(places, p)
		p.obstacles = slices.Concat(p.fixed, t.shortages(p))
		if len(p.obstacles) == 0 {
			p.room = t.room(p)
			open = append(open, p)
		}
	}
	var room int64
	if x.selfish() {
		room = placeEach(q.Copies, open, x)
	} else {
		room = placeAll(q.Copies, open, x)
	}
	for _, p := range places { // with all copies where they are
		p.obstacles = slices.Concat(p.fixed, t.shortages(p), x.refuse(p.state))
		if p.copies > 0 {
			c.placed = append(c.placed, copies{of: t, node: p.node, n: p.copies})
		}
		p.sort()
	}
	return places, room
}

// placeAll places copies that are nothing to each other: as many on each node as there
// is room for.
func placeAll(n int64, open []*place, x *topology) (room int64) {
	open = slices.DeleteFunc(open, func(p *place) bool { return len(x.refuse(p.state)) > 0 })
	slices.SortFunc(open, tightest)
	for _, p := range open {
		room = add(room, p.room)
		taken := min(n, p.room)
		p.take(taken, x.template)
		n -= taken
	}
	return room
}

// placeEach places copies that attract each other or keep each other away, one after
// the other: where fewest of their kind are, then where there is least to spare. The
// first of copies that want to be together goes where most of them can be.
func placeEach(n int64, open []*place, x *topology) (placed int64) {
	slices.SortFunc(open, tightest)
	for ; placed < n; placed++ {
		prefer := func(*place) int64 { return 0 }
		if x.first() {
			prefer = company(open, x)
		}
		var best *place
		order := func(a, b *place) int {
			return cmp.Or(cmp.Compare(prefer(b), prefer(a)), cmp.Compare(x.crowd(a.state), x.crowd(b.state)), tightest(a, b))
		}
		for _, p := range open {
			if len(x.refuse(p.state)) == 0 && (best == nil || order(p, best) < 0) {
				best = p
			}
		}
		if best == nil {
			return placed
		}
		best.take(1, x.template)
		x.place(best.node)
		open = slices.DeleteFunc(open, func(p *place) bool { return p.room == 0 })
	}
	return placed
}

// company is how many copies there is room for around a place, in the smallest domain
// that it shares with others.
func company(open []*place, x *topology) func(*place) int64 {
	room := make(map[domain]int64)
	for _, p := range open {
		for i := range x.affinity {
			if key := x.affinity[i].TopologyKey; len(x.refuse(p.state)) == 0 {
				d := domain{key, p.state.Labels[key]}
				room[d] = add(room[d], p.room)
			}
		}
	}
	return func(p *place) int64 {
		least := int64(math.MaxInt64)
		for i := range x.affinity {
			key := x.affinity[i].TopologyKey
			least = min(least, room[domain{key, p.state.Labels[key]}])
		}
		return least
	}
}

// take gives copies their part of the node.
func (p *place) take(n int64, t *template) {
	if n <= 0 {
		return
	}
	p.copies += n
	p.room -= n
	p.state.pods += n
	for name, v := range t.requests {
		p.state.requested[name] += n * v
	}
	for _, a := range t.gpus {
		p.state.bin(a.Resource).left -= n * a.Value
	}
	for _, port := range t.ports {
		p.state.ports.Add(port.HostIP, string(port.Protocol), port.HostPort)
	}
}

// placeOf finds what keeps any copy from a node, whoever else is there.
func (c *cluster) placeOf(q Question, t *template, n *nodeState) *place {
	var b *bin
	if len(t.gpus) > 0 {
		b = n.bin(t.gpus[0].Resource)
	}
	p := newPlace(n.Name, b, n)
	p.fixed = c.devices(q, t, n)
	if name := t.Spec.NodeName; name != "" && name != n.Name {
		p.fixed = append(p.fixed, obstacle{reason: OtherNode, phrase: "the pod is for node " + name})
	}
	if ok, _ := t.required.Match(n.Node); !ok {
		p.fixed = append(p.fixed, notSelected(t, n))
	}
	unschedulable := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.Spec.Unschedulable && !v1helper.TolerationsTolerateTaint(klog.Background(), t.Spec.Tolerations, &unschedulable, false) {
		p.fixed = append(p.fixed, cordoned)
	}
	if taint := untolerated(n.Node, t); taint != nil {
		if o := taintObstacle(taint); o.reason != Cordoned || !n.Spec.Unschedulable {
			p.fixed = append(p.fixed, o)
		}
	}
	return p
}

// devices finds out whether a node has what the template asks for at all.
func (c *cluster) devices(q Question, t *template, n *nodeState) (out []obstacle) {
	for _, a := range t.gpus {
		b := n.bin(a.Resource)
		switch {
		case b == nil:
			out = append(out, obstacle{reason: NoDevices, about: a.Resource})
		case b.Source == count.DynamicResources && !c.facts.offered[a.Resource]:
			out = append(out, obstacle{reason: NotOffered, phrase: "no DeviceClass offers devices of DRA as " + a.Resource})
		default:
			out = append(out, otherModel(q, b)...)
		}
	}
	return out
}

// notSelected says which label it is, if a node selector is all there is.
func notSelected(t *template, n *nodeState) obstacle {
	for _, key := range slices.Sorted(maps.Keys(t.Spec.NodeSelector)) {
		if want := t.Spec.NodeSelector[key]; n.Labels[key] != want {
			label := key + "=" + want
			return obstacle{reason: NotSelected, about: label, phrase: "not labelled " + label}
		}
	}
	return obstacle{reason: NotSelected, phrase: "the required node affinity does not match"}
}

// shortages says what a node has too little of for one more copy.
func (t *template) shortages(p *place) (out []obstacle) {
	n := p.state
	for i, a := range t.gpus {
		b := n.bin(a.Resource)
		switch {
		case b == nil:
		case i == 0:
			out = append(out, tooFew(b, a.Value)...)
		case b.left < a.Value:
			out = append(out, shortage(corev1.ResourceName(a.Resource), b.left, a.Value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.requests)) {
		if left, want := n.allocatable[name]-n.requested[name], t.requests[name]; left < want && !t.elsewhere(n, name) {
			out = append(out, shortage(name, max(0, left), want))
		}
	}
	if most := n.allocatable[corev1.ResourcePods]; n.pods >= most {
		out = append(out, obstacle{reason: Pods, phrase: "the node has all the pods it takes, " + strconv.FormatInt(n.pods, 10)})
	}
	for _, port := range t.ports {
		if n.ports.CheckConflict(port.HostIP, string(port.Protocol), port.HostPort) {
			name := strconv.Itoa(int(port.HostPort)) + "/" + string(cmp.Or(port.Protocol, corev1.ProtocolTCP))
			out = append(out, obstacle{reason: HostPort, about: name, phrase: "host port " + name + " is taken"})
			break
		}
	}
	return out
}

func shortage(name corev1.ResourceName, left, want int64) obstacle {
	o := obstacle{reason: OtherResource, about: string(name), left: left, want: want}
	o.number = func(v int64) string { return text(name, v) }
	o.phrase = string(name) + " is gone"
	switch name {
	case corev1.ResourceCPU:
		o.reason, o.phrase = CPU, "CPU is gone"
	case corev1.ResourceMemory:
		o.reason = Memory
	}
	return o
}

// room is how many copies a node takes that nothing else keeps away.
func (t *template) room(p *place) int64 {
	n := p.state
	room := n.allocatable[corev1.ResourcePods] - n.pods
	for _, a := range t.gpus {
		room = min(room, times(n.bin(a.Resource).left, a.Value))
	}
	for name, want := range t.requests {
		if !t.elsewhere(n, name) {
			room = min(room, times(n.allocatable[name]-n.requested[name], want))
		}
	}
	if len(t.ports) > 0 {
		room = min(room, 1)
	}
	return room
}

// sort puts the obstacle to look at first at the front, and leaves out what does not
// matter beside it: of a node that was not asked for, or has no GPU to give, nobody
// needs to know what else is wrong with it.
func (p *place) sort() {
	slices.SortStableFunc(p.obstacles, func(a, b obstacle) int {
		return cmp.Compare(slices.Index(Reasons, a.reason), slices.Index(Reasons, b.reason))
	})
	if len(p.obstacles) > 0 && rank(p.obstacles[0].reason) > 0 {
		p.obstacles = p.obstacles[:1]
	}
}
