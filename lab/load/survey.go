package load

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// survey is what of the cluster is on the server already, and can stay.
type survey struct {
	nodes map[string]*corev1.Node
	pods  map[string]*corev1.Pod
}

// survey looks before anything is created. Three lists cost little, make a
// repeated load quick, and find a name that is taken while the server is still
// as the user left it.
func (l *loader) survey(ctx context.Context) (*survey, error) {
	s := &survey{nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}}
	if err := l.surveyNodes(ctx, s.nodes); err != nil {
		return nil, err
	}
	if err := l.surveyPods(ctx, s.pods); err != nil {
		return nil, err
	}
	return s, l.surveyElsewhere(ctx)
}

func (l *loader) surveyNodes(ctx context.Context, found map[string]*corev1.Node) error {
	want := make(map[string]*Node, len(l.cluster.Nodes))
	for i := range l.cluster.Nodes {
		want[l.cluster.Nodes[i].Name] = &l.cluster.Nodes[i]
	}
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.CoreV1().Nodes().List(ctx, o)
	}
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		node := o.(*corev1.Node)
		n := want[node.Name]
		if n == nil && !ours(node) {
			return nil // somebody's real node
		}
		if why := nodeConflict(node, n); why != "" {
			return conflict(l.o.Namespace, "node "+node.Name, why)
		}
		found[node.Name] = node
		return nil
	})
	return listed("nodes", err)
}

func (l *loader) surveyPods(ctx context.Context, found map[string]*corev1.Pod) error {
	want := make(map[string]*Pod, len(l.cluster.Pods))
	for i := range l.cluster.Pods {
		want[l.cluster.Pods[i].Name] = &l.cluster.Pods[i]
	}
	err := l.eachPod(ctx, l.o.Namespace, "", func(pod *corev1.Pod) error {
		p := want[pod.Name]
		if p == nil && !ours(pod) {
			return nil // other pods may live in the namespace
		}
		if why := l.podConflict(pod, p); why != "" {
			return conflict(pod.Namespace, "pod "+pod.Namespace+"/"+pod.Name, why)
		}
		found[pod.Name] = pod
		return nil
	})
	return listed("pods of namespace "+l.o.Namespace, err)
}

// surveyElsewhere refuses a second load into another namespace: it would bind
// every pod a second time to the same nodes, and no total would be the record's.
func (l *loader) surveyElsewhere(ctx context.Context) error {
	err := l.eachPod(ctx, metav1.NamespaceAll, SourceLabel+"="+Source, func(pod *corev1.Pod) error {
		if pod.Namespace == l.o.Namespace {
			return nil
		}
		return conflict(pod.Namespace, "pod "+pod.Namespace+"/"+pod.Name,
			"the trace is loaded in namespace "+pod.Namespace+", and its nodes cannot hold it twice")
	})
	return listed("pods of earlier loads", err)
}

func (l *loader) eachPod(ctx context.Context, namespace, selector string, do func(*corev1.Pod) error) error {
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.CoreV1().Pods(namespace).List(ctx, o)
	}
	return pager.New(list).EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(o runtime.Object) error {
		return do(o.(*corev1.Pod))
	})
}

// ConflictError says that an object on the server stands in the way of a load.
type ConflictError struct {
	// Object is its kind and name, Why what is wrong with it.
	Object, Why string
	// namespace is that of the load it is from.
	namespace string
}

// foreign is why an object of somebody else is in the way.
const foreign = "it was not created by a load"

func (e *ConflictError) Error() string {
	msg := fmt.Sprintf("%s is in the way: %s; nothing was created", e.Object, e.Why)
	if e.Why == foreign {
		return msg // nothing that may be removed
	}
	return fmt.Sprintf("%s (to remove an earlier load: kubectl delete namespace %s; kubectl delete nodes -l %s=%s)",
		msg, e.namespace, SourceLabel, Source)
}

func conflict(namespace, object, why string) error {
	return &ConflictError{Object: object, Why: why, namespace: namespace}
}

// listed wraps an error of listing, not one about what was found.
func listed(what string, err error) error {
	var refused *ConflictError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("list %s: %w", what, err)
}

func ours(o metav1.Object) bool { return o.GetLabels()[SourceLabel] == Source }

// nodeConflict says why the node found cannot serve as n, or nothing.
func nodeConflict(found *corev1.Node, n *Node) string {
	switch {
	case n == nil:
		return "it is left from another load"
	case !ours(found):
		return foreign
	case found.DeletionTimestamp != nil:
		return "it is being deleted"
	}
	want := nodeObject(n, metav1.Time{})
	for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, gpuResource} {
		if why := differs(r, found.Status.Allocatable, want.Status.Allocatable); why != "" {
			return why
		}
	}
	if has, wants := found.Labels[gpuProductLabel], want.Labels[gpuProductLabel]; has != wants {
		return fmt.Sprintf("its %s is %q, not %q", gpuProductLabel, has, wants)
	}
	return ""
}

// podConflict says why the pod found cannot serve as p, or nothing.
func (l *loader) podConflict(found *corev1.Pod, p *Pod) string {
	switch {
	case p == nil:
		return "it is left from another load"
	case !ours(found):
		return foreign
	case found.DeletionTimestamp != nil:
		return "it is being deleted"
	}
	node := l.placement[p.Name]
	if found.Spec.NodeName != node {
		return fmt.Sprintf("it is on node %q, not on %q", found.Spec.NodeName, node)
	}
	want := podObject(p, l.o.Namespace, node)
	for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, gpuResource} {
		if why := differs(r, found.Spec.Containers[0].Resources.Requests, want.Spec.Containers[0].Resources.Requests); why != "" {
			return why
		}
	}
	// A pod that has ended cannot be made to run again, nor to have ended otherwise.
	ended := found.Status.Phase == corev1.PodSucceeded || found.Status.Phase == corev1.PodFailed
	if ended && found.Status.Phase != p.Phase {
		return fmt.Sprintf("it is %s, not %s", found.Status.Phase, p.Phase)
	}
	if found.Labels[PhaseLabel] != want.Labels[PhaseLabel] {
		return fmt.Sprintf("its label %s is %q, not %q", PhaseLabel, found.Labels[PhaseLabel], want.Labels[PhaseLabel])
	}
	return ""
}

func differs(r corev1.ResourceName, has, wants corev1.ResourceList) string {
	h, w := has[r], wants[r]
	if h.Cmp(w) == 0 {
		return ""
	}
	return fmt.Sprintf("its %s is %s, not %s", r, h.String(), w.String())
}
