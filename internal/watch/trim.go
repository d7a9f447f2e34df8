package watch

import (
	corev1 "k8s.io/api/core/v1"
)

// Transforms run twice on the objects of an initial list, so each one passes on
// what it has already trimmed. None of them returns an error: an object that
// failed here would be missing from the cache in silence.

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
