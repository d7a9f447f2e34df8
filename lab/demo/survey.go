package demo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// modelLabel is set by GPU feature discovery.
const modelLabel = "nvidia.com/gpu.product"

// report adds to what is published what the API says of the nodes, and the naive
// sum.
func (d *demo) report(ctx context.Context, p Published) (Report, error) {
	nodes := map[string]node{}
	core := d.client.CoreV1()
	err := each(ctx, func(o metav1.ListOptions) (runtime.Object, error) { return core.Nodes().List(ctx, o) }, func(n *corev1.Node) {
		nodes[n.Name] = node{model: n.Labels[modelLabel], allocatable: gpus(n.Status.Allocatable)}
	})
	if err != nil {
		return Report{}, fmt.Errorf("list nodes: %w", err)
	}
	var naive Naive
	err = each(ctx, func(o metav1.ListOptions) (runtime.Object, error) { return core.Pods("").List(ctx, o) }, naive.add)
	if err != nil {
		return Report{}, fmt.Errorf("list pods: %w", err)
	}
	return newReport(p, nodes, naive), nil
}

// add adds a pod, whatever its phase.
func (n *Naive) add(pod *corev1.Pod) {
	var sum int64
	for _, c := range pod.Spec.Containers {
		sum += gpus(c.Resources.Requests)
	}
	n.Sum += sum
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		n.Finished += sum
	}
}

func gpus(list corev1.ResourceList) int64 {
	quantity := list[count.NVIDIA] // a copy: reading can change it
	return quantity.Value()
}

// each calls do for every object, a page at a time.
func each[T runtime.Object](ctx context.Context, list func(metav1.ListOptions) (runtime.Object, error), do func(T)) error {
	return pager.New(pager.SimplePageFunc(list)).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		typed, ok := object.(T)
		if !ok {
			return fmt.Errorf("got a %T", object)
		}
		do(typed)
		return nil
	})
}
