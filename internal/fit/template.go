package fit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// template is a pod in the form in which it is compared with nodes.
type template struct {
	*corev1.Pod
	requests amounts // without GPUs
	// offered are those of the requests that a DeviceClass stands for: nodes that have
	// none may have devices of DRA, which nobody has counted.
	offered  map[corev1.ResourceName]bool
	gpus     count.Amounts
	required nodeaffinity.RequiredNodeAffinity
	ports    []corev1.ContainerPort
	affinity []fwk.AffinityTerm
	anti     []fwk.AffinityTerm
	spread   []constraint
}

// constraint is a topology spread constraint that is to be satisfied.
type constraint struct {
	key        string
	maxSkew    int64
	minDomains int
	selector   labels.Selector
	// honorAffinity and honorTaints: nodes that the pod cannot be on for such a reason
	// do not take part.
	honorAffinity, honorTaints bool
}

// implicitPrefix begins the name by which a DeviceClass can be asked for directly (D1).
const implicitPrefix = "deviceclass.resource.kubernetes.io/"

func newTemplate(p *corev1.Pod, facts *Facts) (*template, error) {
	t := &template{
		Pod: p, requests: requestsOf(p), offered: make(map[corev1.ResourceName]bool),
		ports: hostPorts(&p.Spec), required: nodeaffinity.GetRequiredNodeAffinity(p),
	}
	for name, v := range t.requests {
		switch {
		case facts.names.Match(string(name)):
			t.gpus = append(t.gpus, count.Amount{Resource: string(name), Value: v})
			delete(t.requests, name)
		case strings.HasPrefix(string(name), implicitPrefix):
			delete(t.requests, name) // a claim in all but name (claimsOf)
		case facts.offered[string(name)]:
			t.offered[name] = true
		}
	}
	slices.SortFunc(t.gpus, func(a, b count.Amount) int { return strings.Compare(a.Resource, b.Resource) })
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		if _, err := nodeaffinity.NewNodeSelector(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution); err != nil {
			return nil, fmt.Errorf("required node affinity: %w", err)
		}
	}
	var err error
	if t.affinity, err = fwk.GetAffinityTerms(p, fwk.GetPodAffinityTerms(p.Spec.Affinity)); err != nil {
		return nil, fmt.Errorf("required pod affinity: %w", err)
	}
	if t.anti, err = fwk.GetAffinityTerms(p, fwk.GetPodAntiAffinityTerms(p.Spec.Affinity)); err != nil {
		return nil, fmt.Errorf("required pod anti-affinity: %w", err)
	}
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("topology spread over %s: %w", c.TopologyKey, err)
		}
		t.spread = append(t.spread, newConstraint(c, selector))
	}
	return t, nil
}

func newConstraint(c *corev1.TopologySpreadConstraint, selector labels.Selector) constraint {
	out := constraint{key: c.TopologyKey, maxSkew: int64(c.MaxSkew), minDomains: 1, selector: selector, honorAffinity: true}
	if c.MinDomains != nil {
		out.minDomains = int(*c.MinDomains)
	}
	if c.NodeAffinityPolicy != nil {
		out.honorAffinity = *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor
	}
	if c.NodeTaintsPolicy != nil {
		out.honorTaints = *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	}
	return out
}

// counts reports whether a pod with these labels adds to a domain. The scheduler lets
// a selector of everything count nothing.
func (c *constraint) counts(set map[string]string) bool {
	return !c.selector.Empty() && c.selector.Matches(labels.Set(set))
}

// matches reports whether a term means a pod. Labels of namespaces are not read; the
// one that every namespace has is its name.
func matches(term *fwk.AffinityTerm, namespace string, set map[string]string) bool {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: set}}
	return term.Matches(&p, labels.Set{corev1.LabelMetadataName: namespace})
}

// matchesAll is what makes a pod one that an affinity is for: all terms mean it.
func matchesAll(terms []fwk.AffinityTerm, namespace string, set map[string]string) bool {
	for i := range terms {
		if !matches(&terms[i], namespace, set) {
			return false
		}
	}
	return len(terms) > 0
}

// elsewhere reports whether it is not known how much of a resource a node has.
func (t *template) elsewhere(n *nodeState, name corev1.ResourceName) bool {
	return t.offered[name] && n.allocatable[name] == 0
}
