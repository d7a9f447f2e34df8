// Package watch is the first stage: API objects in, trimmed records out.
//
// It holds the first three of the controller's five components, each a stock
// part of client-go: the reflector lists and watches, the FIFO puts what it hears
// in order, the indexer keeps the result. Nothing else in this project imports
// informers. Two things are ours. A transform between FIFO and indexer replaces
// every object by a small record (trim.go), so that memory follows what is
// counted and not what the cluster holds; and every list and watch goes through a
// source (source.go), which knows whether the server accepted it.
package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// InformerName labels the informer_* metrics.
const InformerName = "gpu-summary-controller"

// activePods asks the server to leave out pods that have finished: they hold
// nothing, and on busy clusters they are the most. A pod that finishes then
// arrives as a delete.
const activePods = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// Options says what to watch.
type Options struct {
	// Names decides which resources records keep.
	Names count.Names
	// PodNamespace restricts pods to one namespace, "" means all.
	PodNamespace string
	// PodSelector restricts pods by label; nil means all.
	PodSelector labels.Selector
	// Nodes is whether nodes are watched. Without them rows follow pods alone.
	Nodes bool
	// DRAClasses maps device classes to the GPU resource they count as.
	DRAClasses map[string]string
	// Published are the ConfigMaps that we write ourselves.
	Published Published
	// Resync is how often every record is handed to the handlers once more,
	// 0 for never. It asks nothing of the API server.
	Resync time.Duration
}

// Handler hears of changes. Its methods are called from the informers' own
// goroutines and must only enqueue: whatever blocks here blocks every event
// behind it.
//
// old is nil for an addition and new for a removal. Both are nil for a removal
// noticed without a last known state. A resync passes the same pointer twice.
type Handler interface {
	PodChanged(old, new *count.Pod)
	NodeChanged(old, new *count.Node)
	SummaryChanged(old, new *corev1.ConfigMap)
	DeviceClassChanged(old, new *count.DeviceClass)
	ResourceSliceChanged(old, new *count.ResourceSlice)
	ResourceClaimChanged(old, new *count.ResourceClaim)
	// DRAChanged hears that DRA has begun or ceased to be counted, or is not for
	// another reason than before.
	DRAChanged()
}

// Watch owns the informers.
type Watch struct {
	group   *group
	pods    *source
	nodes   *source // nil when nodes are not watched
	summary *source
	dra     *dra

	published Published
}

// New prepares the informers and registers the handler. It starts nothing.
func New(client kubernetes.Interface, o Options, h Handler) (*Watch, error) {
	group, err := newGroup(client, InformerName, o.Resync)
	if err != nil {
		return nil, err
	}
	w := &Watch{group: group, published: o.Published}
	core := client.CoreV1()

	pods := newClient(podKind(o.Names), core.RESTClient(), o.PodNamespace, func(l *metav1.ListOptions) {
		l.FieldSelector = activePods
		if o.PodSelector != nil {
			l.LabelSelector = o.PodSelector.String()
		}
	})
	w.pods = group.add(corev1.SchemeGroupVersion.WithResource("pods"), &podRecord{}, pods, nil, podIndexers)

	if o.Nodes {
		nodes := newClient(nodeKind(o.Names), core.RESTClient(), "", func(*metav1.ListOptions) {})
		w.nodes = group.add(corev1.SchemeGroupVersion.WithResource("nodes"), &nodeRecord{}, nodes, nil, nodeIndexers)
	}

	w.summary = group.add(corev1.SchemeGroupVersion.WithResource("configmaps"), &corev1.ConfigMap{},
		&typed[*corev1.ConfigMapList]{client: core.ConfigMaps(o.Published.Namespace), scope: func(l *metav1.ListOptions) {
			l.LabelSelector = o.Published.Selector
		}}, trimConfigMap, nil)
	w.dra = newDRA(client, o, h)

	return w, w.register(h)
}

// Run lists and watches until ctx ends, and returns when every informer has
// stopped.
func (w *Watch) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { w.group.run(ctx) })
	w.dra.run(ctx) // until ctx ends
	wg.Wait()
}

// sources returns every source there is.
func (w *Watch) sources() []*source { return w.group.sources }

// WaitForSync blocks until every cache holds its initial list, the handler has
// heard of it, and a watch keeps it current; or until ctx ends. The error then
// joins a *SyncError for each cache that is missing.
//
// A list alone is not enough: without the permission to watch it succeeds once,
// and the numbers would stand still from then on without a word.
func (w *Watch) WaitForSync(ctx context.Context) error {
	var checks []cache.DoneChecker
	for _, s := range w.sources() {
		checks = append(checks, s.checks()...)
	}
	if cache.WaitFor(ctx, "", checks...) {
		return nil
	}
	var errs []error
	for _, s := range w.sources() {
		if err := s.err(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, context.Cause(ctx))...)
}

// Synced reports for each watched resource, by name, what keeps it from being
// complete: nil once it is.
func (w *Watch) Synced() map[string]error {
	out := make(map[string]error)
	for _, s := range w.sources() {
		out[s.resource] = s.err()
	}
	return out
}
