package watch

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// register hands the handler to every informer, before they start.
func (w *Watch) register(h Handler) error {
	err := handle(w.pods, func(old, new *podRecord) { h.PodChanged(old.record(), new.record()) })
	if err == nil && w.nodes != nil {
		err = handle(w.nodes, func(old, new *nodeRecord) { h.NodeChanged(old.record(), new.record()) })
	}
	if err == nil {
		err = handle(w.summary, func(old, new *corev1.ConfigMap) { h.SummaryChanged(old, new) })
	}
	return err
}

// handle turns the three callbacks of an informer into one. Unwrapping the
// tombstone of a missed delete is client-go's business: a typed handler is given
// a DeletedObject, whose OptionalObj is nil when not even a stale copy is left.
func handle[T cache.Object](s *source, changed func(old, new T)) error {
	var none T
	var err error
	s.registered, err = cache.NewTypedSharedIndexInformer[T](s.informer).AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[T]{
		AddFunc:    func(obj T) { changed(none, obj) },
		UpdateFunc: changed,
		DeleteFunc: func(gone cache.DeletedObject[T]) { changed(gone.OptionalObj, none) },
	})
	if err != nil {
		return fmt.Errorf("register handler for %s: %w", s.resource, err)
	}
	return nil
}

// record is the pod, nil if all that is known is that it is gone.
func (r *podRecord) record() *count.Pod {
	if r == nil || !r.counts() {
		return nil
	}
	return &r.Pod
}

func (r *nodeRecord) record() *count.Node {
	if r == nil {
		return nil
	}
	return &r.Node
}
