package api

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// pod is one that counts: bound to a node or waiting for one.
type pod struct {
	Namespace string           `json:"namespace"`
	Name      string           `json:"name"`
	Node      string           `json:"node,omitempty"`
	Requests  map[string]int64 `json:"requests"`
	// Models are those that it waits for one of; none if any will do, or it has a node.
	Models   []string `json:"models,omitempty"`
	Priority int32    `json:"priority"`
	// Waits is why it has no node.
	Waits string `json:"waits,omitempty"`
	// Deleting is set once it is being deleted; it counts until it is gone.
	Deleting bool `json:"deleting,omitempty"`
}

type podsDocument struct {
	envelope
	Pods     []pod  `json:"pods"`
	Continue string `json:"continue,omitempty"`
}

// PodSelection says which pods are wanted, of those that count. The zero value wants
// all.
type PodSelection struct {
	Node, Namespace string
	// Pending wants those that have no node; Reason, one of Reasons, why.
	Pending bool
	Reason  string
}

// Reasons are why pods wait.
var Reasons = func() (reasons []string) {
	for _, wait := range count.Waits {
		reasons = append(reasons, wait.String())
	}
	return reasons
}()

// Pods are those that are wanted, sorted by namespace and name.
func (s PodSelection) Pods(all []*count.Pod) []*count.Pod {
	var pods []*count.Pod
	for _, p := range all {
		if s.wants(p) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *count.Pod) int { return cmp.Compare(a.Key, b.Key) })
	return pods
}

func (s PodSelection) wants(p *count.Pod) bool {
	waits := p.Pending()
	return (waits || p.Bound()) &&
		(s.Node == "" || p.Node == s.Node) &&
		(s.Namespace == "" || p.Namespace() == s.Namespace) &&
		(!s.Pending || waits) &&
		(s.Reason == "" || waits && p.Wait.String() == s.Reason)
}

func pods(v View, p *Parameters) any {
	selection := PodSelection{
		Node: p.Text("node"), Namespace: p.Text("namespace"), Pending: p.Flag("pending"), Reason: p.Word("reason", Reasons...),
	}
	selected, next := page(p, selection.Pods(v.Pods), func(p *count.Pod) string { return p.Key })
	document := podsDocument{envelope: v.envelope(), Pods: make([]pod, len(selected)), Continue: next}
	for i, p := range selected {
		_, name, _ := strings.Cut(p.Key, "/")
		document.Pods[i] = pod{
			Namespace: p.Namespace(), Name: name, Node: p.Node, Requests: make(map[string]int64, len(p.Requests)),
			Priority: p.Priority, Waits: p.Wait.String(), Deleting: p.Deleting,
		}
		for _, a := range p.Requests {
			document.Pods[i].Requests[a.Resource] = a.Value
			document.Pods[i].Models = append(document.Pods[i].Models, p.Models(a.Resource)...)
		}
	}
	return document
}
