package fit

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// domain is a label of nodes and one of its values: the nodes of a zone, or a node by
// its host name.
type domain struct{ key, value string }

// topology counts pods by domain, as far as a template cares about them.
type topology struct {
	*template
	nodes func(name string) *nodeState
	// attracting has the pods that its affinity is for, repelling those that its
	// anti-affinity is against, and forbidding those that are against it.
	attracting, repelling, forbidding map[domain]int64
	forbiddenBy                       map[string]bool    // the keys in forbidding
	spread                            []map[string]int64 // by constraint
	least                             []int64            // in any of its domains
}

func newTopology(c *cluster, t *template) *topology {
	x := &topology{
		template: t, nodes: c.node,
		attracting: make(map[domain]int64), repelling: make(map[domain]int64), forbidding: make(map[domain]int64), forbiddenBy: make(map[string]bool),
	}
	for range t.spread {
		x.spread = append(x.spread, make(map[string]int64))
	}
	x.addDomains(c)
	if len(t.affinity)+len(t.anti)+len(t.spread) > 0 {
		for i := range c.facts.pods {
			p := &c.facts.pods[i]
			x.add(p.node, p.namespace, p.labels, p.deleting, 1)
		}
	}
	for _, copies := range c.placed {
		x.add(copies.node, copies.of.Namespace, copies.of.Labels, false, copies.n)
		for i := range copies.of.anti {
			x.forbid(repelling{copies.of.anti[i], copies.node}, copies.n)
		}
	}
	for _, r := range c.facts.repelling {
		x.forbid(r, 1)
	}
	x.findLeast()
	return x
}

// findLeast finds the fewest pods that any domain of a constraint has. With fewer
// domains than there have to be, that is none.
func (x *topology) findLeast() {
	x.least = x.least[:0]
	for i, domains := range x.spread {
		least := int64(math.MaxInt32)
		for _, pods := range domains {
			least = min(least, pods)
		}
		if len(domains) < x.template.spread[i].minDomains {
			least = 0
		}
		x.least = append(x.least, least)
	}
}

// addDomains makes the domains of the spread constraints: one without pods is one too,
// and the reason why others are full.
func (x *topology) addDomains(c *cluster) {
	if len(x.template.spread) == 0 {
		return
	}
	for _, n := range c.nodes {
		for i := range x.template.spread {
			if x.takesPart(n, i) {
				x.spread[i][n.Labels[x.template.spread[i].key]] += 0
			}
		}
	}
}

// takesPart reports whether a node is one that constraint i spreads over.
func (x *topology) takesPart(n *nodeState, i int) bool {
	lacks := func(c constraint) bool { _, ok := n.Labels[c.key]; return !ok }
	if slices.ContainsFunc(x.template.spread, lacks) {
		return false
	}
	c := &x.template.spread[i]
	if c.honorAffinity {
		if ok, _ := x.required.Match(n.Node); !ok {
			return false
		}
	}
	return !c.honorTaints || untolerated(n.Node, x.template) == nil
}

// add counts pods on a node.
func (x *topology) add(on, namespace string, set map[string]string, deleting bool, pods int64) {
	n := x.nodes(on)
	if n == nil {
		return
	}
	if matchesAll(x.affinity, namespace, set) {
		for i := range x.affinity {
			tally(x.attracting, n, x.affinity[i].TopologyKey, pods)
		}
	}
	for i := range x.anti {
		if matches(&x.anti[i], namespace, set) {
			tally(x.repelling, n, x.anti[i].TopologyKey, pods)
		}
	}
	for i := range x.template.spread {
		c := &x.template.spread[i]
		if !deleting && namespace == x.Namespace && c.counts(set) && x.takesPart(n, i) {
			x.spread[i][n.Labels[c.key]] += pods
		}
	}
}

// forbid counts pods whose anti-affinity is against the template.
func (x *topology) forbid(r repelling, pods int64) {
	if n := x.nodes(r.node); n != nil && matches(&r.term, x.Namespace, x.Labels) {
		tally(x.forbidding, n, r.term.TopologyKey, pods)
		x.forbiddenBy[r.term.TopologyKey] = true
	}
}

func tally(in map[domain]int64, n *nodeState, key string, pods int64) {
	if value, ok := n.Labels[key]; ok {
		in[domain{key, value}] += pods
	}
}

// place counts one more copy of the template itself.
func (x *topology) place(on string) {
	x.add(on, x.Namespace, x.Labels, false, 1) // what it is against, it is against in others like it too
	x.findLeast()
}

// selfish reports whether a copy makes a difference to where the next one can be.
func (x *topology) selfish() bool {
	for i := range x.anti {
		if matches(&x.anti[i], x.Namespace, x.Labels) {
			return true
		}
	}
	return x.first() || slices.ContainsFunc(x.template.spread, func(c constraint) bool { return c.counts(x.Labels) })
}

// first reports whether the template wants to be beside pods like itself and there is
// none yet. It may then be anywhere, and decides for those that follow.
func (x *topology) first() bool {
	return len(x.attracting) == 0 && matchesAll(x.affinity, x.Namespace, x.Labels)
}

// refuse says why the pods around a node keep a copy from it.
func (x *topology) refuse(n *nodeState) []obstacle {
	var out []obstacle
	out = append(out, x.refuseAffinity(n)...)
	for i := range x.anti {
		key := x.anti[i].TopologyKey
		if value, ok := n.Labels[key]; ok && x.repelling[domain{key, value}] > 0 {
			out = append(out, obstacle{reason: PodAntiAffinity, about: key, phrase: "a pod that it keeps away from is in the same " + key})
			break
		}
	}
	for key := range x.forbiddenBy {
		if value, ok := n.Labels[key]; ok && x.forbidding[domain{key, value}] > 0 {
			out = append(out, obstacle{reason: OthersAntiAffinity, phrase: "the anti-affinity of a pod that is there keeps it away"})
			break
		}
	}
	for i := range x.template.spread {
		if o := x.refuseSpread(n, i); o != nil {
			return append(out, *o)
		}
	}
	return out
}

func (x *topology) refuseAffinity(n *nodeState) []obstacle {
	beside := true
	for i := range x.affinity {
		key := x.affinity[i].TopologyKey
		value, ok := n.Labels[key]
		if !ok {
			return []obstacle{{reason: PodAffinity, about: key, phrase: "the label " + key + " is missing, which its pod affinity goes by"}}
		}
		beside = beside && x.attracting[domain{key, value}] > 0
	}
	if beside || x.first() {
		return nil
	}
	return []obstacle{{reason: PodAffinity, phrase: "no pod that its pod affinity is for is there"}}
}

func (x *topology) refuseSpread(n *nodeState, i int) *obstacle {
	c := &x.template.spread[i]
	value, ok := n.Labels[c.key]
	if !ok {
		return &obstacle{reason: Spread, about: c.key, phrase: "the label " + c.key + " is missing, which the topology spread goes by"}
	}
	pods := x.spread[i][value]
	if c.selector.Matches(labels.Set(x.Labels)) {
		pods++
	}
	if pods-x.least[i] > c.maxSkew {
		return &obstacle{reason: Spread, about: c.key, phrase: "the topology spread over " + c.key + " would be too uneven"}
	}
	return nil
}

// crowd is how many copies, or pods that count as such, share the domains of a node.
// The copies of a spread are placed where there are fewest.
func (x *topology) crowd(n *nodeState) (pods int64) {
	for i := range x.template.spread {
		if c := &x.template.spread[i]; c.counts(x.Labels) {
			pods += x.spread[i][n.Labels[c.key]]
		}
	}
	return pods
}

// untolerated is the first taint that keeps the pod away.
func untolerated(n *corev1.Node, t *template) *corev1.Taint {
	taint, found := v1helper.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, t.Spec.Tolerations, keepsAway, false)
	if !found {
		return nil
	}
	return &taint
}

func keepsAway(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}
