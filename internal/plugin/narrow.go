package plugin

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gpu-summary/gpu-summary-controller/internal/gather"
)

// narrow restricts what a visitor is told of a dump to a scope, as an API server
// restricts what it lists.
type narrow struct {
	scope gather.Scope
	gather.Visitor
}

func (n narrow) Pod(pod *corev1.Pod) {
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case n.scope.Namespace != "" && pod.Namespace != n.scope.Namespace:
	case finished && !n.scope.FinishedPods:
	case n.scope.PodSelector != nil && !n.scope.PodSelector.Matches(labels.Set(pod.Labels)):
	default:
		n.Visitor.Pod(pod)
	}
}

func (n narrow) Node(node *corev1.Node) {
	if n.scope.Nodes && (n.scope.NodeSelector == nil || n.scope.NodeSelector.Matches(labels.Set(node.Labels))) {
		n.Visitor.Node(node)
	}
}
