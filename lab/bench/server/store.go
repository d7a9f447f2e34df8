package server

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// stored is an API object in memory. It is never changed, only replaced.
type stored interface {
	runtime.Object
	metav1.Object
}

type storedEvent struct {
	event event
	// old is what was there before, nil if there was nothing.
	object, old stored
}

// store keeps the few objects that clients write: ConfigMaps, leases, Events.
type store struct {
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
	next     func() uint64 // gives out resourceVersions
	empty    func() stored
	list     func() runtime.Object

	mu      sync.Mutex
	objects map[types.NamespacedName]stored
	log     []storedEvent
	moved   chan struct{}
}

func keyOf(o stored) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (s *store) get(key types.NamespacedName) (stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.objects[key]; ok {
		return o, nil
	}
	return nil, apierrors.NewNotFound(s.resource.GroupResource(), key.Name)
}

// create stores a new object, which is the store's from now on.
func (s *store) create(o stored) (stored, error) {
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + string(uuid.NewUUID())[:5])
	}
	if err := s.check(o); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(o)
	if _, ok := s.objects[key]; ok {
		return nil, apierrors.NewAlreadyExists(s.resource.GroupResource(), key.Name)
	}
	o.SetUID(uuid.NewUUID())
	o.SetCreationTimestamp(metav1.Now())
	s.commit(added, o, nil)
	return o, nil
}

// update replaces an object. One with the version it has already is refused if
// the version is another, and not written if nothing is.
func (s *store) update(o stored) (stored, error) {
	if err := s.check(o); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[keyOf(o)]
	switch {
	case !ok:
		return nil, apierrors.NewNotFound(s.resource.GroupResource(), o.GetName())
	case o.GetUID() != "" && o.GetUID() != old.GetUID(),
		o.GetResourceVersion() != "" && o.GetResourceVersion() != old.GetResourceVersion():
		return nil, apierrors.NewConflict(s.resource.GroupResource(), o.GetName(), fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	o.SetUID(old.GetUID())
	o.SetCreationTimestamp(old.GetCreationTimestamp())
	o.SetManagedFields(old.GetManagedFields())
	o.SetResourceVersion(old.GetResourceVersion())
	if same(o, old) {
		return old, nil
	}
	s.commit(modified, o, old)
	return o, nil
}

func (s *store) remove(key types.NamespacedName, p *metav1.Preconditions) (stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[key]
	if !ok {
		return nil, apierrors.NewNotFound(s.resource.GroupResource(), key.Name)
	}
	if p != nil && (p.UID != nil && *p.UID != old.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion()) {
		return nil, apierrors.NewConflict(s.resource.GroupResource(), key.Name, fmt.Errorf("a precondition failed"))
	}
	gone := old.DeepCopyObject().(stored)
	s.commit(deleted, gone, old)
	return gone, nil
}

// check refuses what a real server would refuse for its size.
func (s *store) check(o stored) error {
	cm, ok := o.(*corev1.ConfigMap)
	if !ok {
		return nil
	}
	size := 0
	for _, value := range cm.Data {
		size += len(value)
	}
	if size > corev1.MaxSecretSize || cm.Size() > etcdLimit {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("ConfigMap %s has %d bytes of values and is %d bytes in all", cm.Name, size, cm.Size()))
	}
	return nil
}

// etcdLimit is what etcd accepts.
const etcdLimit = 3 << 19

// commit makes a change known. The caller holds the lock.
func (s *store) commit(e event, o, old stored) {
	o.SetResourceVersion(strconv.FormatUint(s.next(), 10))
	o.GetObjectKind().SetGroupVersionKind(s.kind)
	if e == deleted {
		delete(s.objects, keyOf(o))
	} else {
		s.objects[keyOf(o)] = o
	}
	s.log = append(s.log, storedEvent{event: e, object: o, old: old})
	close(s.moved)
	s.moved = make(chan struct{})
}

// selection is which objects a list or a watch is about.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (s selection) has(o stored) bool {
	return o != nil && (s.namespace == "" || s.namespace == o.GetNamespace()) && s.labels.Matches(labels.Set(o.GetLabels())) &&
		s.fields.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()})
}

// snapshot returns the selected objects in order, the version at which that is so,
// and how many changes were made before.
func (s *store) snapshot(sel selection, version func() uint64) (objects []stored, at uint64, log int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects {
		if sel.has(o) {
			objects = append(objects, o)
		}
	}
	slices.SortFunc(objects, func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return objects, version(), len(s.log)
}

// since returns the changes from number log on and a channel that is closed with the next one.
func (s *store) since(log int) ([]storedEvent, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log[log:], s.moved
}

// after returns how many changes had been made at that version.
func (s *store) after(version uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := len(s.log)
	for ; log > 0; log-- {
		if v, _ := strconv.ParseUint(s.log[log-1].object.GetResourceVersion(), 10, 64); v <= version {
			break
		}
	}
	return log
}

// as returns the event as somebody sees it who has selected: what is changed so
// that it is not selected any more is gone to him.
func (e storedEvent) as(sel selection) (event, bool) {
	before, now := e.old != nil && sel.has(e.old), e.event != deleted && sel.has(e.object)
	switch {
	case now && before:
		return modified, true
	case now:
		return added, true
	case before:
		return deleted, true
	}
	return 0, false
}

func same(a, b stored) bool {
	x, errX := marshal(a)
	y, errY := marshal(b)
	if errX != nil || errY != nil || len(x) != len(y) {
		return false
	}
	return string(x) == string(y)
}

func marshal(o stored) ([]byte, error) {
	m, ok := o.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf encoding", o)
	}
	return m.Marshal()
}

// newList makes a list of the store's kind.
func (s *store) newList(objects []stored, version uint64) (runtime.Object, error) {
	list := s.list()
	items := make([]runtime.Object, len(objects))
	for i, o := range objects {
		items[i] = o
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, fmt.Errorf("make a list of %s: %w", s.resource.Resource, err)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("make a list of %s: %w", s.resource.Resource, err)
	}
	accessor.SetResourceVersion(strconv.FormatUint(version, 10))
	list.GetObjectKind().SetGroupVersionKind(s.kind.GroupVersion().WithKind(s.kind.Kind + "List"))
	return list, nil
}
