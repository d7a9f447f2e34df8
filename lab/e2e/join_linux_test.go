package e2e

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/realnode"
)

// join adds another node with a kubelet and GPUs until the end of the test. It is
// cordoned, so that nothing goes there before the test says so. At the end the
// installation is again as other tests expect it.
func (e *env) join() *realnode.Node {
	e.Helper()
	node, err := startNode(e.Context())
	e.must(err)
	stop := func() error { return nil }
	e.Cleanup(func() { e.part(node, func() error { return stop() }) })
	e.cordon(node, true)
	_, ended, err := startDriver(node, otherDevices)
	e.must(err)
	stop = ended
	e.must(loadImages(e.Context(), node))
	e.nodes = append(e.nodes, node)
	e.row(node.Name(), 0)
	return node
}

// part brings the replicas back to the first node and removes the other.
func (e *env) part(node *realnode.Node, stopDriver func() error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if e.Failed() {
		e.describe(ctx)
	}
	// Whatever fails, the next test must not find the node.
	defer func() {
		e.nodes = e.nodes[:1]
		err := lab.client.CoreV1().Nodes().Delete(ctx, node.Name(), metav1.DeleteOptions{})
		if err := errors.Join(stopDriver(), node.Stop(), err); err != nil {
			e.Errorf("clean up: %v", err)
		}
		e.rowIs(ctx, node.Name(), "")
	}()
	e.cordon(e.node, false)
	e.cordon(node, true)
	e.empty(ctx)
	e.eventuallyIn(ctx, "the replicas to be back", func() error {
		pods, err := e.client.CoreV1().Pods(e.site.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.Name()})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			if p.DeletionTimestamp == nil {
				err = errors.Join(err, e.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}))
			}
		}
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d are on node %s", len(pods.Items), node.Name())
		}
		return errors.Join(err, e.site.working(ctx, 2))
	})
	e.agreeIn(ctx)
}

// deployed makes a Deployment of one pod with so many GPUs, which comes back elsewhere
// when it is evicted, and waits until it runs. It is gone before a node that has joined.
func (e *env) deployed(name string, gpus int) {
	e.Helper()
	labels := map[string]string{"app": name}
	template := holder("", gpus)
	template.Labels = labels
	template.Spec.RestartPolicy = "" // as Deployments have it
	template.Spec.TerminationGracePeriodSeconds = new(int64(1))
	deployments := e.client.AppsV1().Deployments(e.namespace)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	deployment.Spec.Template.ObjectMeta, deployment.Spec.Template.Spec = template.ObjectMeta, template.Spec
	_, err := deployments.Create(e.Context(), deployment, metav1.CreateOptions{})
	e.must(err)
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// With its pods: while they are there, another would come for each that is removed.
		foreground := metav1.DeletePropagationForeground
		if err := deployments.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
			e.Errorf("clean up: %v", err)
		}
		e.eventuallyIn(ctx, "Deployment "+name+" to be gone", func() error {
			left, err := deployments.List(ctx, metav1.ListOptions{})
			if err == nil && len(left.Items) > 0 {
				err = errors.New("it is there")
			}
			return err
		})
	})
	e.eventually("Deployment "+name+" to be available", func() error {
		d, err := deployments.Get(e.Context(), name, metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas != 1 {
			err = fmt.Errorf("%+v", d.Status)
		}
		return err
	})
}
