package integration

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// template is the pod that is asked about.
func (m *caseMaker) template() *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: m.id, Labels: map[string]string{"app": m.app(), "hash": "new"}},
		Spec:       m.spec(0, 1, 1, 2, 2, 4),
	}
	p.Spec.NodeSelector = map[string]string{caseLabel: m.id}
	m.maybe(6, func() { p.Spec.NodeSelector["disk"] = m.pick("ssd", "hdd") })
	m.maybe(2, func() { p.Spec.Tolerations = append(p.Spec.Tolerations, m.toleration()) })
	m.maybe(8, func() {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: quantity(m.among(9, 16))}}
	}, func() {
		p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: gibibytes(m.among(28, 40))}}
	})
	affinity := &corev1.Affinity{}
	m.maybe(4, func() { affinity.NodeAffinity = m.nodeAffinity() })
	m.maybe(5, func() {
		affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: m.terms()}
	})
	m.maybe(4, func() {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: m.terms()}
	})
	if *affinity != (corev1.Affinity{}) {
		p.Spec.Affinity = affinity
	}
	m.maybe(3, func() { p.Spec.TopologySpreadConstraints = m.spread() })
	return p
}

func (m *caseMaker) toleration() corev1.Toleration {
	switch m.IntN(5) {
	case 0:
		return corev1.Toleration{Key: "team", Operator: corev1.TolerationOpEqual, Value: m.pick("x", "y")}
	case 1:
		return corev1.Toleration{Key: "team", Operator: corev1.TolerationOpExists, Effect: m.effect()}
	case 2:
		return corev1.Toleration{Key: count.NVIDIA, Operator: corev1.TolerationOpExists}
	case 3:
		return corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	}
	return corev1.Toleration{Operator: corev1.TolerationOpExists}
}

func (m *caseMaker) nodeAffinity() *corev1.NodeAffinity {
	var terms []corev1.NodeSelectorTerm
	for range 1 + m.IntN(2) {
		r := corev1.NodeSelectorRequirement{Key: m.zone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}}
		m.maybe(1,
			func() { r.Operator = corev1.NodeSelectorOpNotIn },
			func() { r.Operator, r.Values = corev1.NodeSelectorOpExists, nil },
			func() { r.Operator, r.Values = corev1.NodeSelectorOpDoesNotExist, nil },
			func() { r.Key, r.Operator, r.Values = "generation", corev1.NodeSelectorOpGt, []string{"3"} },
			func() { r.Key, r.Operator, r.Values = "generation", corev1.NodeSelectorOpLt, []string{"5"} },
			func() {},
		)
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}})
	}
	m.maybe(4, func() {
		terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{m.id + "-n0"}}}})
	})
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

func (m *caseMaker) spread() (out []corev1.TopologySpreadConstraint) {
	// One constraint for each key and action is what an API server takes.
	keys := []string{m.pick(corev1.LabelHostname, m.zone, m.zone)}
	m.maybe(8, func() { keys = []string{corev1.LabelHostname, m.zone} })
	for _, key := range keys {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: int32(m.among(1, 1, 2)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": m.app()}},
		}
		m.maybe(3, func() { c.WhenUnsatisfiable = corev1.ScheduleAnyway }, func() { c.MinDomains = ptr.To[int32](3) })
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			c.MinDomains = nil
		}
		m.maybe(3, func() { c.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor) })
		if key == m.zone { // the others' nodes have no such label, and host names without end
			m.maybe(3, func() { c.NodeAffinityPolicy = ptr.To(corev1.NodeInclusionPolicyIgnore) })
		}
		m.maybe(6, func() { c.LabelSelector = &metav1.LabelSelector{} }, func() { c.LabelSelector = nil }, func() { c.MatchLabelKeys = []string{"hash"} })
		if c.LabelSelector == nil {
			c.MatchLabelKeys = nil
		}
		out = append(out, c)
	}
	return out
}
