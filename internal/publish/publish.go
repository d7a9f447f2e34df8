// Package publish is actuation: a Snapshot in, a ConfigMap in the cluster out.
//
// It decides first, without touching anything: render says what the ConfigMap
// should hold, diff what of that is missing. Then it acts at most once. Equal
// content is never written, because the write would come back as an event and
// start the next pass. Every update carries the resourceVersion that the
// decision was based on, so that the API server refuses it if somebody was
// faster; the refusal is returned, and the queue tries again later.
package publish

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Publisher keeps one ConfigMap equal to the latest snapshot. One goroutine at a
// time may call it.
type Publisher struct {
	client   corev1client.ConfigMapsGetter
	target   types.NamespacedName
	resource string
	cached   func() (object *corev1.ConfigMap, observed string)

	// written is what our last write returned and said what it was meant to say,
	// nil before the first. The cache learns of a write some time after it: until
	// then written is what is true.
	written *corev1.ConfigMap
	said    *content
}

// New makes a publisher for one resource. cached is the watched copy of the
// target: nil if there is none, and the resourceVersion up to which that is so.
func New(client corev1client.ConfigMapsGetter, target types.NamespacedName, resource string,
	cached func() (*corev1.ConfigMap, string),
) *Publisher {
	return &Publisher{client: client, target: target, resource: resource, cached: cached}
}

// Publish makes the ConfigMap say what the snapshot says. It never retries: an
// error means that nothing was written, or that it is not known whether it was.
// A conflict is an error like any other; calling again after a while is right for
// all of them.
func (p *Publisher) Publish(ctx context.Context, snap *count.Snapshot) (Result, error) {
	want := render(snap, p.resource)
	have := p.believed()
	if have == nil {
		return p.create(ctx, want)
	}
	result := compare(have, want)
	if !result.Wrote() {
		return result, nil
	}
	switch {
	case p.said == nil:
		result.Reason = Outdated
	case compare(have, *p.said).Wrote():
		result.Reason = Edited
	default:
		result.Reason = Changed
	}
	next := have.DeepCopy()
	apply(next, want)
	updated, err := p.client.ConfigMaps(p.target.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return Result{}, fmt.Errorf("update ConfigMap %s: %w", p.target, advise(err))
	}
	p.written, p.said = updated, &want
	return result, nil
}

func (p *Publisher) create(ctx context.Context, want content) (Result, error) {
	next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.target.Namespace, Name: p.target.Name}}
	result := compare(next, want)
	result.Action, result.Reason = Created, Missing
	if p.said != nil {
		result.Reason = Deleted
	}
	apply(next, want)
	created, err := p.client.ConfigMaps(p.target.Namespace).Create(ctx, next, metav1.CreateOptions{})
	if err != nil {
		return Result{}, fmt.Errorf("create ConfigMap %s: %w", p.target, advise(err))
	}
	p.written, p.said = created, &want
	return result, nil
}

// believed is the newest state of the ConfigMap that we know of: the cache's, or
// our own last write as long as the cache has not caught up with it. nil means
// that there is none.
func (p *Publisher) believed() *corev1.ConfigMap {
	object, observed := p.cached()
	if p.written == nil || !older(observed, p.written.ResourceVersion) {
		return object
	}
	if object != nil && !older(object.ResourceVersion, p.written.ResourceVersion) {
		return object
	}
	return p.written
}

// older reports whether version a is known to be older than b. Versions that do
// not compare are taken as not older: the cache is then believed, and at worst a
// write is refused as a conflict.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// advise adds what to do to errors whose text does not say it.
func advise(err error) error {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("%w (the namespace is being deleted: choose another with --namespace)", err)
	case apierrors.IsNotFound(err) && concerns(err, "namespaces"):
		return fmt.Errorf("%w (create it, or choose another with --namespace)", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w (deploy/manifests/rbac.yaml has the rules that are needed)", err)
	case apierrors.IsInvalid(err):
		return fmt.Errorf("%w (if somebody made it immutable, delete it: it will be written anew)", err)
	}
	return err
}

// concerns reports whether a status error is about an object of the given kind.
func concerns(err error, kind string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == kind
}
