package gather

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
)

// Scope says what is read of a cluster.
type Scope struct {
	// Namespace restricts pods to one namespace, "" means all. Claims are read in all
	// of them, for the devices that they hold are not free for anybody.
	Namespace string
	// PodSelector restricts pods by label; nil means all.
	PodSelector labels.Selector
	// FinishedPods is whether pods that have finished are read too. They hold nothing,
	// and on busy clusters they are the most.
	FinishedPods bool
	// Nodes is whether nodes are read.
	Nodes bool
	// NodeSelector restricts nodes by label; nil means all. To whoever counts, a pod on
	// a node that is left out is one on a node that does not exist.
	NodeSelector labels.Selector
	// DRA is whether classes, slices and claims are read where they are served.
	DRA bool
}

// activePods leaves out pods that have finished.
const activePods = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// Cluster reads a cluster once, a page at a time, so that no more than a page is
// held. How objects come over the wire is the client's business: one that asks for
// protobuf halves the bytes and spares most of the decoding.
//
// Pods come first: a node that appears meanwhile is then one more, and not one that
// pods are on and nobody knows.
//
// An error is about pods, or about ctx. Nodes and DRA that cannot be read are in
// Report.Missing, and it is up to the caller whether to go on without.
func Cluster(ctx context.Context, client kubernetes.Interface, s Scope, v Visitor) (Report, error) {
	var r Report
	t := teller{to: v, told: &r.Told}
	core := client.CoreV1()
	version, err := list(ctx, "pods", s.Namespace, s.pods(), core.Pods(s.Namespace).List, func(l *corev1.PodList) { each(l.Items, t.pod) })
	if err != nil {
		return r, err
	}
	r.Observed.Pods = version
	if s.Nodes {
		version, err := list(ctx, "nodes", "", options(s.NodeSelector), core.Nodes().List, func(l *corev1.NodeList) { each(l.Items, t.node) })
		r.NodesKnown, r.Observed.Nodes = err == nil, version
		r.missing(err)
	}
	if s.DRA {
		r.readDRA(ctx, client, t)
	}
	return r, context.Cause(ctx)
}

func (s *Scope) pods() metav1.ListOptions {
	o := options(s.PodSelector)
	if !s.FinishedPods {
		o.FieldSelector = activePods
	}
	return o
}

func options(selector labels.Selector) (o metav1.ListOptions) {
	if selector != nil {
		o.LabelSelector = selector.String()
	}
	return o
}

const (
	// pageSize is how many objects are in memory at once.
	pageSize = 500
	// pageTimeout bounds the wait for a page. There are API servers that accept a
	// connection and never answer.
	pageTimeout = 2 * time.Minute
	// expiries bounds how often a list may expire under way. A page token lasts for
	// five minutes or more.
	expiries = 16
)

// list tells all objects of a list, a page after the other, and returns the version
// at which it began.
//
// A list that takes longer than the API server keeps old versions expires. What the
// server offers then is taken: to go on behind the last object told, with the
// objects as they are now. None is told twice, and no page before has to be kept.
func list[L metav1.ListInterface](
	ctx context.Context, resource, namespace string, o metav1.ListOptions,
	get func(context.Context, metav1.ListOptions) (L, error), tell func(L),
) (version string, err error) {
	failed := func(err error) error { return explain(ctx, resource, namespace, err) }
	o.Limit = pageSize
	for expired := 0; ; {
		page, err := within(ctx, pageTimeout, func(ctx context.Context) (L, error) { return get(ctx, o) })
		if next := goOn(err); next != "" && next != o.Continue && expired < expiries {
			expired++
			o.Continue = next
			continue
		}
		if err != nil {
			return "", failed(err)
		}
		if version == "" {
			version = page.GetResourceVersion()
		}
		tell(page)
		switch next := page.GetContinue(); next {
		case "":
			return version, nil
		case o.Continue:
			return "", failed(errors.New("the API server sends the same page again and again"))
		default:
			o.Continue = next
		}
	}
}

// within bounds the wait for an answer, and says so when it is over.
func within[T any](ctx context.Context, timeout time.Duration, ask func(context.Context) (T, error)) (T, error) {
	late := fmt.Errorf("the API server did not answer within %v", timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	answer, err := ask(ctx)
	if err != nil && errors.Is(context.Cause(ctx), late) {
		err = late
	}
	return answer, err
}

// goOn is the token that a list which has expired can be continued with, "" if there
// is none.
func goOn(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// explain says what was attempted, and what to do.
func explain(ctx context.Context, resource, namespace string, err error) error {
	where := "in all namespaces"
	switch {
	case namespace != "":
		where = "in namespace " + namespace
	case resource != "pods" && resource != "resourceclaims":
		where = "of the cluster"
	}
	what := "list " + resource + " " + where
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w (ask for a role with the verb list on %s %s)", what, err, resource, where)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %w (the API server does not know who you are: log in again)", what, err)
	case apierrors.IsResourceExpired(err):
		return fmt.Errorf("%s: %w (the API server forgets faster than it is read: try again)", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// each tells objects one by one. Each is copied, so that a visitor who keeps one does
// not keep its page.
func each[T any](items []T, tell func(*T)) {
	for _, item := range items {
		tell(&item)
	}
}
