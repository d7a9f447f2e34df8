package watch

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Transforms run twice on the objects of an initial list, so each one passes on
// what it has already trimmed. None of them returns an error: an object that
// failed here would be missing from the cache in silence.

// trimPod reduces a pod to its record.
func trimPod(names count.Names) cache.TransformFunc {
	return func(obj any) (any, error) {
		if pod, ok := obj.(*corev1.Pod); ok {
			return &podRecord{resourceVersion: pod.ResourceVersion, Pod: count.ReadPod(pod, names)}, nil
		}
		return obj, nil
	}
}

// trimNode reduces a node to its record.
func trimNode(names count.Names) cache.TransformFunc {
	return func(obj any) (any, error) {
		if node, ok := obj.(*corev1.Node); ok {
			return &nodeRecord{resourceVersion: node.ResourceVersion, Node: count.ReadNode(node, names)}, nil
		}
		return obj, nil
	}
}

// trimConfigMap drops managedFields: with thousands of keys they are larger than
// the data. The server keeps its own when an update comes without any.
func trimConfigMap(obj any) (any, error) {
	if cm, ok := obj.(*corev1.ConfigMap); ok && cm.ManagedFields != nil {
		// Nobody else has seen the object yet: this is the one place where a
		// change needs no copy.
		cm.ManagedFields = nil
	}
	return obj, nil
}
