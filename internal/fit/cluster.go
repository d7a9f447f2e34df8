package fit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// cluster is the state that questions change: what is left, and the copies placed.
type cluster struct {
	facts  *Facts
	snap   *count.Snapshot
	bins   []*bin // as the snapshot's rows
	nodes  []*nodeState
	byName map[string]*nodeState
	placed []copies
}

// bin is a row of the snapshot and how many of its free devices are left.
type bin struct {
	*count.Row
	left int64
}

// copies are the copies of an earlier question that a node has got.
type copies struct {
	of   *template
	node string
	n    int64
}

// nodeState is a node and what is left of it.
type nodeState struct {
	*node
	requested amounts
	pods      int64
	ports     fwk.HostPortInfo
	bins      []*bin
}

func newCluster(facts *Facts, snap *count.Snapshot) *cluster {
	c := &cluster{facts: facts, snap: snap, byName: make(map[string]*nodeState, len(facts.nodes))}
	for _, name := range slices.Sorted(maps.Keys(facts.nodes)) {
		n := &nodeState{node: facts.nodes[name], requested: make(amounts), ports: make(fwk.HostPortInfo)}
		if u := facts.usage[name]; u != nil {
			n.requested, n.pods = maps.Clone(u.requested), u.pods
			for ip, ports := range u.ports {
				n.ports[ip] = maps.Clone(ports)
			}
		}
		c.nodes = append(c.nodes, n)
		c.byName[name] = n
	}
	for i := range snap.Rows {
		b := &bin{&snap.Rows[i], snap.Rows[i].Free}
		c.bins = append(c.bins, b)
		if n := c.byName[b.Node]; n != nil {
			n.bins = append(n.bins, b)
		}
	}
	return c
}

func (c *cluster) node(name string) *nodeState { return c.byName[name] }

// bin is where a pod has its devices of a resource from: the device plugin if that has
// any to give, else DRA (D2). It is nil on a node without.
func (n *nodeState) bin(resource string) (b *bin) {
	for _, candidate := range n.bins {
		switch {
		case candidate.Resource != resource:
		case candidate.Source == count.DevicePlugin && candidate.Allocatable > 0:
			return candidate
		case candidate.Source == count.DynamicResources || b == nil:
			b = candidate
		}
	}
	return b
}

// place is somewhere copies can be: a node, or a row of one where only GPUs matter.
type place struct {
	node        string
	bin         *bin // nil if no GPUs are asked for, or there are none
	free        int64
	allocatable int64
	state       *nodeState // nil where only GPUs matter
	// fixed are obstacles that no copy changes, obstacles all of them.
	fixed     []obstacle
	obstacles []obstacle
	room      int64
	copies    int64
}

func newPlace(name string, b *bin, n *nodeState) *place {
	p := &place{node: name, bin: b, state: n}
	if b != nil {
		p.free, p.allocatable = b.left, b.Allocatable
	}
	return p
}

// left is how many devices are.
func (p *place) left() int64 {
	if p.bin == nil {
		return 0
	}
	return p.bin.left
}

// tightest orders places so that the one with least to spare is filled first: that
// leaves the large gaps to those who need them, and makes no difference to how many
// copies fit.
func tightest(a, b *place) int {
	return cmp.Or(cmp.Compare(a.left(), b.left()), cmp.Compare(a.room, b.room), strings.Compare(a.node, b.node))
}

func (c *cluster) ask(q Question) (Answer, error) {
	a := Answer{Question: q.Name, Copies: q.Copies, Resource: q.Resource, Devices: q.Devices, Notes: slices.Clone(q.Notes)}
	var places []*place
	if q.Pod == nil {
		places = c.fillRows(q)
		a.Room = roomOf(places)
	} else {
		t, err := newTemplate(q.Pod, c.facts)
		if err != nil {
			return Answer{}, fmt.Errorf("%s: %w", q.Name, err)
		}
		if len(t.gpus) == 0 && len(q.Models) > 0 {
			return Answer{}, fmt.Errorf("%s: its pods ask for no GPU, so that there is no model to choose", q.Name)
		}
		if len(t.gpus) > 0 {
			a.Resource, a.Devices = t.gpus[0].Resource, t.gpus[0].Value
		}
		places, a.Room = c.fillNodes(q, t)
	}
	a.conclude(places)
	claims := c.claimsOf(q.Pod)
	a.Notes = slices.Concat(a.Notes, limits(q.Pod, claims), c.notes(&a))
	a.Verdict = DoesNotFit
	switch {
	case a.Placed < a.Copies:
	case len(claims) > 0:
		a.Verdict = Unknown
	default:
		a.Verdict = Fits
	}
	return a, nil
}

func roomOf(places []*place) (room int64) {
	for _, p := range places {
		room = add(room, p.room)
	}
	return room
}

// fillRows places copies that need GPUs and nothing else: into the rows of nodes that
// take pods (N3), as the snapshot's own Fit does.
func (c *cluster) fillRows(q Question) []*place {
	var places []*place
	has := make(map[string]bool)
	for _, b := range c.bins {
		if b.Resource != q.Resource {
			continue
		}
		has[b.Node] = true
		p := newPlace(b.Node, b, nil)
		p.fixed = append(p.fixed, otherModel(q, b)...)
		p.obstacles = slices.Concat(p.fixed, tooFew(b, q.Devices), stateObstacles(b.States))
		if len(p.obstacles) == 0 {
			p.room = times(b.left, q.Devices)
		}
		places = append(places, p)
	}
	byTightness := slices.SortedFunc(slices.Values(places), tightest)
	left := q.Copies
	for _, p := range byTightness {
		p.copies = min(left, p.room)
		left -= p.copies
		if p.copies > 0 {
			p.bin.left -= p.copies * q.Devices
			p.obstacles = tooFew(p.bin, q.Devices)
		}
	}
	for _, p := range places {
		p.sort()
	}
	for name := range c.facts.nodes {
		if !has[name] {
			p := newPlace(name, nil, nil)
			p.obstacles = []obstacle{{reason: NoDevices, about: q.Resource}}
			places = append(places, p)
		}
	}
	return places
}

// times is how often a part goes into a whole; any number of times if it is nothing.
func times(whole, part int64) int64 {
	if part <= 0 {
		return math.MaxInt64
	}
	return max(0, whole) / part
}

func otherModel(q Question, b *bin) []obstacle {
	if len(q.Models) == 0 || slices.Contains(q.Models, b.Model) {
		return nil
	}
	return []obstacle{{reason: OtherModel, about: b.Model, phrase: "of model " + b.Model}}
}

func tooFew(b *bin, devices int64) []obstacle {
	switch {
	case b.left >= devices:
		return nil
	case b.left == 0:
		return []obstacle{{reason: Full, want: devices}}
	}
	return []obstacle{{reason: TooFew, left: b.left, want: devices}}
}

// stateObstacles says what N3 says.
func stateObstacles(states []count.State) (out []obstacle) {
	for _, s := range states {
		switch s {
		case count.NotReady:
			out = append(out, notReady)
		case count.SchedulingDisabled:
			out = append(out, cordoned)
		default:
			out = append(out, obstacle{reason: Tainted, phrase: "the node is tainted"})
		}
	}
	return out
}

var (
	cordoned = obstacle{reason: Cordoned, phrase: "cordoned"}
	notReady = obstacle{reason: NotReady, phrase: "not ready"}
)

func taintObstacle(t *corev1.Taint) obstacle {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
		return notReady
	case corev1.TaintNodeUnschedulable:
		return cordoned
	}
	return obstacle{reason: Tainted, about: t.ToString(), phrase: "the taint " + t.ToString() + " is not tolerated"}
}
