package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
)

// setDefaults does to a pod what the API server does when the pod is created, as far
// as it makes a difference to where the pod fits. A template in a file has not been
// through that, and neither has one that the API server stores in a Deployment.
func setDefaults(p *corev1.Pod) {
	spec := &p.Spec
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
			if spec.HostNetwork {
				takeHostPorts(&containers[i])
			}
		}
	}
	requestPodLevel(p)
	tolerateOutages(spec)
	mergeLabelKeys(p)
}

// requestLimits: what is limited and not requested is requested.
func requestLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, requested := r.Requests[name]; requested {
			continue
		}
		if r.Requests == nil {
			r.Requests = make(corev1.ResourceList)
		}
		r.Requests[name] = limit
	}
}

// takeHostPorts: in the node's network a container's port is the node's.
func takeHostPorts(c *corev1.Container) {
	for i := range c.Ports {
		if c.Ports[i].HostPort == 0 {
			c.Ports[i].HostPort = c.Ports[i].ContainerPort
		}
	}
}

// requestPodLevel fills in what a pod requests as a whole: what its containers
// request, of resources that may be overcommitted, and else its limits.
func requestPodLevel(p *corev1.Pod) {
	r := p.Spec.Resources
	if r == nil || len(r.Requests) == 0 && len(r.Limits) == 0 {
		return
	}
	if r.Requests == nil {
		r.Requests = make(corev1.ResourceList)
	}
	containers := corev1.Pod{Spec: corev1.PodSpec{Containers: p.Spec.Containers, InitContainers: p.Spec.InitContainers}}
	for name, q := range resource.AggregateContainerRequests(&containers, resource.PodResourcesOptions{}) {
		if _, set := r.Requests[name]; !set && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			r.Requests[name] = q
		}
	}
	for name, q := range r.Limits {
		if _, set := r.Requests[name]; !set && resource.IsSupportedPodLevelResource(name) {
			r.Requests[name] = q
		}
	}
}

// tolerateOutages: every pod bears with a node that is lost for a while, unless it
// says for itself how long. A node that is so tainted, and has no other taint, takes
// pods.
func tolerateOutages(spec *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		says := func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}
		if !slices.ContainsFunc(spec.Tolerations, says) {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			})
		}
	}
}

// mergeLabelKeys writes what matchLabelKeys and mismatchLabelKeys stand for into the
// selectors, with the pod's own labels.
func mergeLabelKeys(p *corev1.Pod) {
	var terms []corev1.PodAffinityTerm
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, term := range terms {
		require(term.LabelSelector, p.Labels, term.MatchLabelKeys, metav1.LabelSelectorOpIn)
		require(term.LabelSelector, p.Labels, term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	for _, c := range p.Spec.TopologySpreadConstraints {
		require(c.LabelSelector, p.Labels, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
}

// require adds to a selector, if there is one: without it nothing matches.
func require(selector *metav1.LabelSelector, labels map[string]string, keys []string, op metav1.LabelSelectorOperator) {
	for _, key := range keys {
		if value, ok := labels[key]; ok && selector != nil {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{value}})
		}
	}
}
