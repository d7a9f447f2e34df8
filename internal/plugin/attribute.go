package plugin

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// portion is what the count has of one pod or claim.
type portion struct {
	// requested is what it holds, orphaned the part of that on nodes that do not exist.
	requested, orphaned int64
	pending             int64
}

// portions are by resource.
type portions map[string]portion

// shares is what the count has of each pod and of each claim by itself.
//
// Nothing is counted here. The count splits what it counts by namespace, so it is taken
// once more with every pod and every claim in a namespace of its own; what it says of
// that namespace, it says of them. The portions thus add up to the whole: devices that
// several claims share are in one of them, as in the whole.
type shares struct {
	pods   map[key]portions
	claims map[key]portions
	// waiting is what claims that hold nothing ask for; the count has no such number,
	// and it is in no total. It is that of a pod that asks for the same classes.
	waiting map[key]portions
}

func (f *facts) shares(whole count.World) shares {
	s := shares{make(map[key]portions), make(map[key]portions), make(map[key]portions)}
	all := make(map[string]portions)
	of := func(name string) portions {
		all[name] = make(portions)
		return all[name]
	}
	// No namespace has a # in its name, and there is none in those of claims either,
	// which begin with the real one: of several claims the count books what they share
	// on the first by namespace and name, and that must not change.
	split := count.World{Nodes: whole.Nodes, NodesKnown: whole.NodesKnown}
	for i, at := range slices.SortedFunc(maps.Keys(f.pods), compareKeys) {
		pod := f.pods[at].Pod
		name := fmt.Sprintf("#pod%d", i)
		pod.Key = name + "/"
		split.Pods = append(split.Pods, &pod)
		s.pods[at] = of(name)
	}
	if whole.DRA != nil {
		dra := *whole.DRA
		dra.Claims = nil
		for at, c := range f.claims {
			record := c.ResourceClaim
			record.Namespace = at.namespace + "\x00" + at.name
			dra.Claims = append(dra.Claims, &record)
			s.claims[at] = of(record.Namespace)
			if !c.Holds() {
				name := fmt.Sprintf("#claim%d", len(s.waiting))
				split.Pods = append(split.Pods, &count.Pod{Key: name + "/", Wait: count.Untried, Requests: asking(c.asks)})
				s.waiting[at] = of(name)
			}
		}
		split.DRA = &dra
	}
	take(split, all, func(p *portion, share *count.Share) { p.requested, p.pending = share.Requested, share.Pending })
	if !split.NodesKnown {
		return s
	}
	// Pods whose node does not exist are in no namespace's numbers (R3), unless nobody
	// knows which nodes there are.
	split.Nodes, split.NodesKnown = nil, false
	take(split, all, func(p *portion, share *count.Share) {
		p.orphaned = share.Requested - p.requested
		p.requested, p.pending = share.Requested, share.Pending
	})
	return s
}

// take counts, and notes what each namespace has.
func take(w count.World, all map[string]portions, note func(*portion, *count.Share)) {
	snapshot := count.Take(w)
	for i := range snapshot.Summaries {
		sum := &snapshot.Summaries[i]
		for j := range sum.Namespaces {
			if of := all[sum.Namespaces[j].Name]; of != nil {
				p := of[sum.Resource]
				note(&p, &sum.Namespaces[j])
				of[sum.Resource] = p
			}
		}
	}
}

// asking is a request for devices by the names that every class has without saying so
// (D1).
func asking(asks []ask) (amounts count.Amounts) {
	sums := make(map[string]int64)
	for _, a := range asks {
		sums[resourcev1.ResourceDeviceClassPrefix+a.class] += a.n
	}
	for _, resource := range slices.Sorted(maps.Keys(sums)) {
		amounts = append(amounts, count.Amount{Resource: resource, Value: sums[resource]})
	}
	return amounts
}
