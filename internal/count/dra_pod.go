package count

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// implicitPrefix begins the resource name that every class has without saying so
// (D1): deviceclass.resource.kubernetes.io/<class>.
const implicitPrefix = "deviceclass.resource.kubernetes.io/"

// matchOrImplicit is Match, and takes what may turn out to be a GPU: which class
// selects what is not known when a pod is read.
func (n Names) matchOrImplicit(resource string) bool {
	return n.Match(resource) || strings.HasPrefix(resource, implicitPrefix)
}

// servedOf lists what the scheduler has noted to come through the pod's claim.
func servedOf(status *corev1.PodExtendedResourceClaimStatus, names Names) (served []string) {
	for _, m := range status.RequestMappings {
		if names.matchOrImplicit(m.ResourceName) {
			served = append(served, m.ResourceName)
		}
	}
	slices.Sort(served)
	return slices.Compact(served)
}

// servedByDRA reports whether the pod has its devices of a resource through a
// claim. The evidence is what the scheduler has written into the pod (D2); that a
// node has no such resource to give is none, for its device plugin may have died
// under the pod.
func (p *Pod) servedByDRA(resource string) bool {
	claim := p.Claim()
	return claim != nil && slices.Contains(claim.Resources, resource)
}

// served books a request that a claim serves. The devices are counted from the
// claims, and the request, which the pod still carries in its spec, is not added to
// them. As long as claims cannot be seen the request is all there is to go by.
//
// On a node that has devices of a device plugin the scheduler charges the request
// to those as well: it goes by the spec.
func (t *tally) served(p *Pod, a Amount) {
	node := t.nodes[p.Node]
	if node != nil && node.Allocatable.Of(a.Resource) > 0 {
		row := t.row(rowKey{p.Node, a.Resource, DevicePlugin})
		row.Claimed = add(row.Claimed, a.Value)
	}
	switch {
	case t.seesClaims():
	case t.world.NodesKnown && node == nil:
		sum := t.sum(a.Resource)
		sum.Orphaned = add(sum.Orphaned, a.Value)
	default:
		t.holds(p, a, DynamicResources)
	}
}

func (t *tally) seesClaims() bool { return t.world.DRA != nil && t.world.DRA.State == DRASynced }

// phantom reports whether a row only repeats what DRA has: a device plugin that is
// gone for good can leave its capacity behind, of the devices that a DRA driver has
// taken over (D2).
func (t *tally) phantom(r *Row) bool {
	if r.Source != DevicePlugin || r.Allocatable > 0 || r.Requested > 0 {
		return false
	}
	other := t.rows[rowKey{r.Node, r.Resource, DynamicResources}]
	return other != nil && other.Capacity > 0
}

// asks is what a pod asks for, by the name that it counts under. A request for a
// class by its implicit name is one for the resource that the class stands for
// (D1); if that is not a GPU, or nobody knows, it is none.
func (t *tally) asks(p *Pod) Amounts {
	if !slices.ContainsFunc(p.Requests, func(a Amount) bool { return strings.HasPrefix(a.Resource, implicitPrefix) }) {
		return p.Requests
	}
	sums := make(map[string]int64)
	for _, a := range p.Requests {
		name := a.Resource
		if class, implicit := strings.CutPrefix(name, implicitPrefix); implicit {
			// What a bound pod has of a class is in its claim.
			if name = t.implicit[class]; name == "" || p.Bound() {
				continue
			}
		}
		sums[name] = add(sums[name], a.Value)
	}
	var out Amounts
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, Amount{Resource: name, Value: sums[name]})
	}
	return out
}
