package watch

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Published says which ConfigMaps are our own. They are watched so that an edit or
// a delete by somebody else is noticed.
type Published struct {
	Namespace string
	// Selector selects by label. How many there are, and so their names, depends on
	// the size of the cluster.
	Selector string
}

// Published returns one of our ConfigMaps as the cache has it, nil if it has none,
// and the resourceVersion up to which the cache is complete. The object is shared:
// copy it before changing anything.
func (w *Watch) Published(name string) (object *corev1.ConfigMap, observed string) {
	// The version first: the object may then be newer than it, never older.
	observed = w.summary.version()
	// Reading an indexer cannot fail.
	obj, exists, _ := w.summary.informer.GetIndexer().GetByKey(cache.NewObjectName(w.published.Namespace, name).String())
	if exists {
		object = obj.(*corev1.ConfigMap)
	}
	return object, observed
}

// AllPublished returns all of them, in any order.
func (w *Watch) AllPublished() []*corev1.ConfigMap {
	var objects []*corev1.ConfigMap
	for _, obj := range w.summary.informer.GetIndexer().List() {
		objects = append(objects, obj.(*corev1.ConfigMap))
	}
	return objects
}
