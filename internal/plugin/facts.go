package plugin

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/gather"
)

// key names a namespaced object.
type key struct{ namespace, name string }

// pod is what is kept of a pod that asks for a GPU or uses a claim. Of all others,
// which are the most, nothing is.
type pod struct {
	count.Pod
	key
	owner   string
	phase   string // Terminating while it is being deleted, as kubectl has it
	message string // why it has no node, in the scheduler's words
	created time.Time
	claims  []string // in its namespace
}

// claim is what is kept of a ResourceClaim.
type claim struct {
	count.ResourceClaim
	created time.Time
	asks    []ask    // what its requests ask for
	pods    []string // who has reserved it
}

// ask is a request of a claim. all stands for every device that there is.
type ask struct {
	class string
	n     int64
	all   bool
}

// facts collects what the count needs, and what rows need besides.
type facts struct {
	names        count.Names
	nodeSelector labels.Selector // nil for all
	detail       []string        // the nodes that everything is kept of

	// By name, because a dump may have an object twice; the last one is kept.
	pods    map[key]*pod
	nodes   map[string]*count.Node
	classes map[string]*count.DeviceClass
	slices  map[string]*count.ResourceSlice
	claims  map[key]*claim

	selected map[string]bool // the nodes that nodeSelector selects
	details  map[string]*corev1.Node
	others   map[string]bool // extended resources that are not counted
}

var _ gather.Visitor = (*facts)(nil)

func newFacts(names count.Names) *facts {
	return &facts{
		names: names,
		pods:  make(map[key]*pod), nodes: make(map[string]*count.Node), classes: make(map[string]*count.DeviceClass),
		slices: make(map[string]*count.ResourceSlice), claims: make(map[key]*claim),
		selected: make(map[string]bool), details: make(map[string]*corev1.Node), others: make(map[string]bool),
	}
}

// Pod keeps a pod if it counts or uses a claim.
func (f *facts) Pod(p *corev1.Pod) {
	record, at := count.ReadPod(p, f.names), key{p.Namespace, p.Name}
	claims := claimsOf(p)
	if record.Terminal || len(record.Requests) == 0 && record.Claim() == nil && len(claims) == 0 {
		delete(f.pods, at)
		return
	}
	kept := &pod{
		Pod: record, key: at, owner: ownerOf(p), phase: string(p.Status.Phase), message: messageOf(p),
		created: p.CreationTimestamp.Time, claims: claims,
	}
	if record.Deleting {
		kept.phase = "Terminating"
	}
	f.pods[at] = kept
}

// Node keeps a node: pods may turn out to be on it.
func (f *facts) Node(n *corev1.Node) {
	record := count.ReadNode(n, f.names)
	f.nodes[n.Name] = &record
	if f.nodeSelector == nil || f.nodeSelector.Matches(labels.Set(n.Labels)) {
		f.selected[n.Name] = true
	}
	if slices.Contains(f.detail, n.Name) {
		f.details[n.Name] = n
	}
	for name, quantity := range n.Status.Capacity {
		if !quantity.IsZero() && extended(string(name)) && !f.names.Match(string(name)) {
			f.others[string(name)] = true
		}
	}
}

// extended reports whether a resource is some vendor's.
func extended(resource string) bool {
	domain, _, ok := strings.Cut(resource, "/")
	return ok && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// DeviceClass keeps a class.
func (f *facts) DeviceClass(c *resourcev1.DeviceClass) {
	record := count.ReadDeviceClass(c, f.names)
	f.classes[c.Name] = &record
}

// ResourceSlice keeps a slice.
func (f *facts) ResourceSlice(s *resourcev1.ResourceSlice) {
	record := count.ReadResourceSlice(s)
	f.slices[s.Name] = &record
}

// ResourceClaim keeps a claim.
func (f *facts) ResourceClaim(c *resourcev1.ResourceClaim) {
	kept := &claim{ResourceClaim: count.ReadResourceClaim(c), created: c.CreationTimestamp.Time, asks: asksOf(&c.Spec)}
	for _, consumer := range c.Status.ReservedFor {
		if consumer.APIGroup == "" && consumer.Resource == "pods" {
			kept.pods = append(kept.pods, consumer.Name)
		}
	}
	f.claims[key{c.Namespace, c.Name}] = kept
}

// world is what is counted. The order makes no difference to it.
func (f *facts) world(r gather.Report, classes map[string]string) count.World {
	w := count.World{
		Nodes:      slices.Collect(maps.Values(f.nodes)),
		NodesKnown: r.NodesKnown,
		Observed:   r.Observed,
		DRA:        f.dra(r, classes),
	}
	for _, p := range f.pods {
		w.Pods = append(w.Pods, &p.Pod)
	}
	return w
}

func (f *facts) dra(r gather.Report, classes map[string]string) *count.DRA {
	dra := &count.DRA{
		State: r.DRA, Reason: r.DRAReason, Resources: classes,
		Classes: slices.Collect(maps.Values(f.classes)),
		Slices:  slices.Collect(maps.Values(f.slices)),
	}
	for _, c := range f.claims {
		dra.Claims = append(dra.Claims, &c.ResourceClaim)
	}
	return dra
}

// ownerOf is what people started: of a pod of a ReplicaSet that belongs to a
// Deployment, as its pod-template-hash tells, the Deployment.
func ownerOf(p *corev1.Pod) string {
	for i := range p.OwnerReferences {
		owner := &p.OwnerReferences[i]
		if !ptr.Deref(owner.Controller, false) {
			continue
		}
		if hash := p.Labels["pod-template-hash"]; owner.Kind == "ReplicaSet" && hash != "" {
			if deployment, ok := strings.CutSuffix(owner.Name, "-"+hash); ok {
				return "Deployment/" + deployment
			}
		}
		return owner.Kind + "/" + owner.Name
	}
	return ""
}

func messageOf(p *corev1.Pod) string {
	if len(p.Spec.SchedulingGates) > 0 {
		gates := make([]string, 0, len(p.Spec.SchedulingGates))
		for _, gate := range p.Spec.SchedulingGates {
			gates = append(gates, gate.Name)
		}
		return "gates: " + strings.Join(gates, ", ")
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// claimsOf are the claims of a pod that there are: some are made from a template, and
// then the status has their names. That for extended resources is among them.
func claimsOf(p *corev1.Pod) (names []string) {
	for _, c := range p.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	for _, c := range p.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	if status := p.Status.ExtendedResourceClaimStatus; status != nil {
		names = append(names, status.ResourceClaimName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// asksOf is what the requests of a claim ask for. Of alternatives it is the first, which
// is what is wanted most.
func asksOf(spec *resourcev1.ResourceClaimSpec) (asks []ask) {
	for i := range spec.Devices.Requests {
		switch r := &spec.Devices.Requests[i]; {
		case r.Exactly != nil:
			asks = append(asks, ask{r.Exactly.DeviceClassName, max(1, r.Exactly.Count), r.Exactly.AllocationMode == resourcev1.DeviceAllocationModeAll})
		case len(r.FirstAvailable) > 0:
			first := &r.FirstAvailable[0]
			asks = append(asks, ask{first.DeviceClassName, max(1, first.Count), first.AllocationMode == resourcev1.DeviceAllocationModeAll})
		}
	}
	return asks
}
