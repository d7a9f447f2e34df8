package count

import (
	"maps"
	"slices"
)

// Holder is what the pods of one namespace hold of a row's devices.
type Holder struct {
	Namespace string `json:"namespace"`
	Devices   int64  `json:"devices"`
}

// Holders says for each of some rows who holds what is requested there, sorted by
// namespace. What is missing from the sum of a row of source dra is held by claims
// that pods share or have made themselves.
func Holders(rows []Row, pods []*Pod) [][]Holder {
	at := make(map[rowKey]int, len(rows))
	for i := range rows {
		at[rowKey{rows[i].Node, rows[i].Resource, rows[i].Source}] = i
	}
	held := make([]map[string]int64, len(rows))
	for _, p := range pods {
		if !p.Bound() {
			continue
		}
		for _, a := range p.Requests {
			i, ok := at[rowKey{p.Node, a.Resource, p.sourceOf(a.Resource)}]
			if !ok {
				continue
			}
			if held[i] == nil {
				held[i] = make(map[string]int64)
			}
			held[i][p.Namespace()] = add(held[i][p.Namespace()], a.Value)
		}
	}
	out := make([][]Holder, len(rows))
	for i, by := range held {
		for _, namespace := range slices.Sorted(maps.Keys(by)) {
			out[i] = append(out[i], Holder{Namespace: namespace, Devices: by[namespace]})
		}
	}
	return out
}

// sourceOf is where a bound pod has its devices of a resource from (D2).
func (p *Pod) sourceOf(resource string) Source {
	if p.servedByDRA(resource) {
		return DynamicResources
	}
	return DevicePlugin
}
