package integration

import (
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// prepare creates nodes and what is on them, and waits until all of it is as it is
// meant to be.
func (e *env) prepare(cases []fitCase) {
	e.Helper()
	e.createAll(len(cases), func(i int) error {
		for _, n := range cases[i].nodes {
			if _, err := e.client.CoreV1().Nodes().Create(e.Context(), n, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("%s: %w", n.Name, err)
			}
		}
		for _, p := range cases[i].existing {
			if _, err := e.client.CoreV1().Pods(p.Namespace).Create(e.Context(), p, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		return nil
	})
	e.eventually("nodes that are ready", func() error {
		nodes, err := e.client.CoreV1().Nodes().List(e.Context(), metav1.ListOptions{LabelSelector: caseLabel})
		if err != nil {
			return err
		}
		for i := range nodes.Items {
			if err := settled(&nodes.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	e.eventually("pods that run, or have finished", func() error {
		pods, err := e.client.CoreV1().Pods("").List(e.Context(), metav1.ListOptions{LabelSelector: "app"})
		if err != nil {
			return err
		}
		var late error
		for i := range pods.Items {
			p := &pods.Items[i]
			switch {
			case p.Status.Phase == corev1.PodPending:
				late = fmt.Errorf("%s is %s", p.Name, p.Status.Phase)
			case p.Labels["done"] != "" && p.Status.Phase == corev1.PodRunning:
				p.Status.Phase = corev1.PodSucceeded
				if _, err := e.client.CoreV1().Pods(p.Namespace).UpdateStatus(e.Context(), p, metav1.UpdateOptions{}); err != nil {
					return err
				}
				late = fmt.Errorf("%s has only just finished", p.Name)
			}
		}
		return late
	})
}

// settled reports whether the node controller has put the taints on a node that belong
// there, and taken off the others.
func settled(n *corev1.Node) error {
	cordoned := false
	for _, taint := range n.Spec.Taints {
		switch taint.Key {
		case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
			return fmt.Errorf("%s is not ready yet", n.Name)
		case corev1.TaintNodeUnschedulable:
			cordoned = true
		}
	}
	if cordoned != n.Spec.Unschedulable {
		return fmt.Errorf("%s has yet to get the taint of a cordoned node", n.Name)
	}
	return nil
}

// createAll does something for each case, some at the same time.
func (e *env) createAll(n int, do func(i int) error) {
	e.Helper()
	var g errgroup.Group
	g.SetLimit(8)
	for i := range n {
		g.Go(func() error { return do(i) })
	}
	e.must(g.Wait())
}

func (e *env) createCopies(c *fitCase) error {
	for i := range c.copies {
		p := c.pod.DeepCopy()
		p.Name = fmt.Sprintf("%s-%d", c.id, i)
		p.Annotations = map[string]string{caseLabel: c.id}
		if _, err := e.client.CoreV1().Pods(p.Namespace).Create(e.Context(), p, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("%s: %w", c.describe(), err)
		}
	}
	return nil
}

// placements is what the scheduler has decided, by case.
func (e *env) placements() (map[string]decision, error) {
	pods, err := e.client.CoreV1().Pods(e.namespace).List(e.Context(), metav1.ListOptions{LabelSelector: "hash"})
	if err != nil {
		return nil, err
	}
	out := map[string]decision{}
	for i := range pods.Items {
		p := &pods.Items[i]
		id := p.Annotations[caseLabel]
		d := out[id]
		if p.Spec.NodeName != "" {
			d.nodes = append(d.nodes, p.Spec.NodeName)
		}
		for _, c := range p.Status.Conditions {
			if p.Spec.NodeName == "" && c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				d.refused++
				d.message = c.Message
			}
		}
		out[id] = d
	}
	return out, nil
}
