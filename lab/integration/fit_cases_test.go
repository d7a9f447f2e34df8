package integration

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// fitCase is a small cluster within the cluster: nodes that have a label in common,
// what is on them, and a pod that asks for nodes with this label.
type fitCase struct {
	id       string
	nodes    []*corev1.Node
	existing []*corev1.Pod
	pod      *corev1.Pod
	copies   int64
}

const caseLabel = "lab.gpu-summary/case"

// caseMaker throws the dice for a case.
type caseMaker struct {
	*rand.Rand
	id        string
	zone      string // the label that stands for a zone, of this case alone
	namespace string
	otherOne  string // another namespace
}

func makeCase(seed uint64, n int, namespace, other string) fitCase {
	m := &caseMaker{Rand: rand.New(rand.NewPCG(seed, uint64(n))), id: fmt.Sprintf("c%03d", n), namespace: namespace, otherOne: other}
	m.zone = "lab.gpu-summary/zone-" + m.id
	c := fitCase{id: m.id, copies: int64(1 + m.IntN(5))}
	if m.oneIn(4) {
		c.copies = 1
	}
	for i := range 2 + m.IntN(4) {
		c.nodes = append(c.nodes, m.node(i))
	}
	for i := range m.IntN(6) {
		c.existing = append(c.existing, m.existing(i, c.nodes[m.IntN(len(c.nodes))].Name))
	}
	c.pod = m.template()
	return c
}

func (m *caseMaker) oneIn(n int) bool           { return m.IntN(n) == 0 }
func (m *caseMaker) pick(from ...string) string { return from[m.IntN(len(from))] }
func (m *caseMaker) app() string                { return m.id + "-" + m.pick("a", "a", "a", "b") }
func (m *caseMaker) key() string                { return m.pick(corev1.LabelHostname, m.zone) }
func quantity(n int) resource.Quantity          { return *resource.NewQuantity(int64(n), resource.DecimalSI) }
func gibibytes(n int) resource.Quantity {
	return *resource.NewQuantity(int64(n)<<30, resource.BinarySI)
}
func (m *caseMaker) among(n ...int) int { return n[m.IntN(len(n))] }
func (m *caseMaker) maybe(n int, do ...func()) {
	if m.oneIn(n) {
		do[m.IntN(len(do))]()
	}
}

func (m *caseMaker) node(i int) *corev1.Node {
	name := fmt.Sprintf("%s-n%d", m.id, i)
	list := corev1.ResourceList{
		corev1.ResourceCPU: quantity(m.among(4, 8, 64)), corev1.ResourceMemory: gibibytes(m.among(8, 32, 256)),
		corev1.ResourcePods: quantity(m.among(2, 3, 110, 110, 110)), corev1.ResourceEphemeralStorage: gibibytes(100),
	}
	if gpus := m.among(0, 2, 4, 8, 8); gpus > 0 {
		list[count.NVIDIA] = quantity(gpus)
	}
	if m.oneIn(3) {
		list["example.com/nic"] = quantity(m.among(1, 2))
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, caseLabel: m.id, "disk": m.pick("ssd", "hdd"), "generation": m.pick("3", "4", "5")}},
		Status:     corev1.NodeStatus{Capacity: list, Allocatable: list},
	}
	if !m.oneIn(6) {
		n.Labels[m.zone] = m.pick("a", "b", "c")
	}
	n.Spec.Unschedulable = m.oneIn(9)
	m.maybe(4, func() {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "team", Value: m.pick("x", "y"), Effect: m.effect()})
	})
	m.maybe(8, func() {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: count.NVIDIA, Value: "present", Effect: corev1.TaintEffectNoSchedule})
	})
	return n
}

func (m *caseMaker) effect() corev1.TaintEffect {
	return []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}[m.IntN(3)]
}

// resources are requests, or limits that the API server makes requests of.
func (m *caseMaker) resources(gpus ...int) (r corev1.ResourceRequirements) {
	list := corev1.ResourceList{}
	m.maybe(2, func() { list[corev1.ResourceCPU] = resource.MustParse(m.pick("500m", "1", "1500m", "3")) })
	m.maybe(2, func() { list[corev1.ResourceMemory] = gibibytes(m.among(1, 3, 9)) })
	m.maybe(8, func() { list[corev1.ResourceEphemeralStorage] = gibibytes(m.among(40, 60)) })
	n := m.among(gpus...)
	if n > 0 {
		list[count.NVIDIA] = quantity(n)
	}
	nic := m.oneIn(12)
	if nic {
		list["example.com/nic"] = quantity(1)
	}
	if m.oneIn(2) {
		r.Limits = list
		return r
	}
	// Of extended resources both have to be equal.
	r.Requests, r.Limits = list, corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{count.NVIDIA, "example.com/nic"} {
		if q, ok := list[name]; ok {
			r.Limits[name] = q
		}
	}
	return r
}

func (m *caseMaker) spec(gpus ...int) corev1.PodSpec {
	s := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "busybox", Resources: m.resources(gpus...)}}}
	m.maybe(5, func() {
		s.Containers = append(s.Containers, corev1.Container{Name: "d", Image: "busybox", Resources: m.resources(0, 1)})
	})
	m.maybe(5, func() {
		c := corev1.Container{Name: "i", Image: "busybox", Resources: m.resources(0, 1, 4)}
		if m.oneIn(2) {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		m.maybe(2, func() { c.Ports = m.ports() })
		s.InitContainers = append(s.InitContainers, c)
	})
	m.maybe(4, func() { s.Containers[0].Ports = m.ports() })
	if len(s.Containers[0].Ports) == 0 {
		m.maybe(10, func() {
			s.HostNetwork = true
			s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
		})
	}
	return s
}

func (m *caseMaker) ports() []corev1.ContainerPort {
	return []corev1.ContainerPort{{
		ContainerPort: 8080, HostPort: int32(m.among(8080, 8080, 8081)), HostIP: m.pick("", "127.0.0.1", "127.0.0.2"), Protocol: corev1.Protocol(m.pick("TCP", "TCP", "UDP")),
	}}
}

// existing is a pod that is on a node, whatever that thinks of it.
func (m *caseMaker) existing(i int, node string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: fmt.Sprintf("%s-e%d", m.id, i), Labels: map[string]string{"app": m.app()}},
		Spec:       m.spec(0, 0, 1, 2),
	}
	m.maybe(4, func() { p.Namespace = m.otherOne })
	m.maybe(6, func() { p.Labels["done"] = "yes" })
	m.maybe(6, func() {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: m.terms()}}
	})
	p.Spec.NodeName, p.Spec.SchedulerName, p.Spec.RestartPolicy = node, "nobody", corev1.RestartPolicyNever
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return p
}

func (m *caseMaker) terms() []corev1.PodAffinityTerm {
	term := func() corev1.PodAffinityTerm {
		t := corev1.PodAffinityTerm{TopologyKey: m.key(), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": m.app()}}}
		m.maybe(3,
			func() { t.Namespaces = []string{m.otherOne} },
			func() { t.Namespaces = []string{m.namespace, m.otherOne} },
			func() { t.NamespaceSelector = &metav1.LabelSelector{} },
			func() {
				t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: m.otherOne}}
			},
			func() { t.MatchLabelKeys = []string{"hash"} },
		)
		return t
	}
	if m.oneIn(6) {
		return []corev1.PodAffinityTerm{term(), term()}
	}
	return []corev1.PodAffinityTerm{term()}
}

// exact reports whether it makes no difference to the number of copies that fit which
// of the possible nodes each of them gets. Where copies look for each other the first
// decides for all, and of two rules that copies are subject to among themselves the
// second may leave no room where the first did. Under a single spread the number is the
// same whatever the order: each domain is filled until it is full, or ahead of
// the smallest by as much as may be, and the smallest can always be filled up.
func (c *fitCase) exact() bool {
	if c.copies == 1 {
		return true
	}
	rules := 0
	for _, constraint := range c.pod.Spec.TopologySpreadConstraints {
		if constraint.WhenUnsatisfiable == corev1.DoNotSchedule {
			rules++
		}
	}
	if a := c.pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		rules += len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	own := func(t corev1.PodAffinityTerm) bool { return t.LabelSelector.MatchLabels["app"] == c.pod.Labels["app"] }
	if a := c.pod.Spec.Affinity; a != nil && a.PodAffinity != nil && slices.ContainsFunc(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, own) {
		return false
	}
	return rules <= 1
}

// alone reports whether copies are nothing to each other, so that a node that takes
// one of them would have taken the first.
func (c *fitCase) alone() bool {
	return len(c.pod.Spec.TopologySpreadConstraints) == 0 && (c.pod.Spec.Affinity == nil || c.pod.Spec.Affinity.PodAffinity == nil)
}
