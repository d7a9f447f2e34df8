package publish

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// object is what is known of one ConfigMap besides what the cache has.
type object struct {
	base      string // the set it is of
	name      string
	publisher *Publisher

	// written is what our last write returned, or a read that went past the cache;
	// nil once the cache has caught up with it. Until then it is what is true.
	written *corev1.ConfigMap
	// removed is the UID of the object that we deleted ourselves. The cache may
	// still have it.
	removed types.UID
	// right is the last version that said what we wanted it to say, "" before the
	// first. It tells an edit by somebody else from counts that changed.
	right string
	// seen is whether there was one, as far as we know, look whether there may be
	// one that the cache does not have.
	seen, look bool

	// sum is the generation of the data at version summed.
	sum, summed string
}

// believed is the newest state of the object that we know of: the cache's, or our
// own last write as long as the cache has not caught up with it. nil means that
// there is none.
//
// The cache follows a label. An object that lost it is gone from the cache, but
// not from the cluster, and one that never had it cannot be created. So when an
// object is missing that was there, or when a create has met one, the API server
// is asked.
func (o *object) believed(ctx context.Context) (*corev1.ConfigMap, error) {
	cached, observed := o.publisher.cache.Published(o.name)
	if cached != nil && cached.UID == o.removed {
		cached = nil
	}
	if o.written != nil {
		version := o.written.ResourceVersion
		if older(observed, version) && (cached == nil || older(cached.ResourceVersion, version)) {
			return o.written, nil
		}
		o.written = nil
	}
	if cached != nil {
		o.seen, o.look = true, false
		return cached, nil
	}
	if !o.seen && !o.look {
		return nil, nil
	}
	return o.read(ctx)
}

// read asks the API server, once.
func (o *object) read(ctx context.Context) (*corev1.ConfigMap, error) {
	live, err := o.publisher.client.Get(ctx, o.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		o.seen, o.look = false, false
		return nil, nil
	case err != nil:
		return nil, o.failed("get", err)
	}
	if other := live.Labels[LabelInstance]; live.Labels[labelManagedBy] == manager && other != "" && other != o.publisher.Name {
		return nil, fmt.Errorf("ConfigMap %s belongs to the controller with --name=%s: choose another --name or --capacity-name, or delete it", o, other)
	}
	o.written, o.seen, o.look = live, true, false
	return live, nil
}

// write makes the object say what it should. have is nil when there is none.
func (o *object) write(ctx context.Context, have *corev1.ConfigMap, want content) (Write, error) {
	if err := o.checkSize(want.data); err != nil {
		return Write{}, err
	}
	write := Write{Name: o.name, Reason: o.reason(have)}
	var next, got *corev1.ConfigMap
	var err error
	if have == nil {
		write.Action = Created
		next = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.publisher.Namespace, Name: o.name}}
		apply(next, want)
		got, err = o.publisher.client.Create(ctx, next, metav1.CreateOptions{})
		o.look = apierrors.IsAlreadyExists(err)
	} else {
		write.Action = Updated
		next = have.DeepCopy()
		apply(next, want)
		got, err = o.publisher.client.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err != nil {
		return Write{}, o.refused(map[Action]string{Created: "create", Updated: "update"}[write.Action], err, want.data)
	}
	got.ManagedFields = nil // larger than the data, and not looked at
	o.written, o.right, o.summed = got, got.ResourceVersion, got.ResourceVersion
	o.seen, o.removed = true, ""
	return write, nil
}

// reason says why the object has to be written.
func (o *object) reason(have *corev1.ConfigMap) Reason {
	switch {
	case have == nil && o.right == "":
		return Missing
	case have == nil:
		return Vanished
	case o.right == "":
		return Outdated
	case o.right != have.ResourceVersion:
		return Edited
	}
	return Changed
}

// generation names the data that the object should have. Adding it up takes longer
// than all else that is done to an object, so it is done once for each version.
func (o *object) generation(have *corev1.ConfigMap, want content) string {
	if want.same && o.summed == have.ResourceVersion {
		return o.sum
	}
	o.sum, o.summed = generation(want.data), ""
	if want.same {
		o.summed = have.ResourceVersion
	}
	return o.sum
}

// remove deletes the object as far as we know it, and no other state of it.
func (o *object) remove(ctx context.Context) (deleted bool, err error) {
	have, err := o.believed(ctx)
	if have == nil {
		return false, err
	}
	err = o.publisher.client.Delete(ctx, o.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, o.failed("delete", err)
	}
	*o = object{base: o.base, name: o.name, publisher: o.publisher, removed: have.UID}
	return err == nil, nil
}

func (o *object) String() string { return o.publisher.Namespace + "/" + o.name }

func (o *object) failed(verb string, err error) error {
	return fmt.Errorf("%s ConfigMap %s: %w", verb, o, advise(err))
}

// older reports whether version a is known to be older than b. Versions that do
// not compare are taken as not older: the cache is then believed, and at worst a
// write is refused as a conflict.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

func dataOf(cm *corev1.ConfigMap) map[string]string {
	if cm == nil {
		return nil
	}
	return cm.Data
}
