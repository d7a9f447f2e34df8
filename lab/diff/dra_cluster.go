package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// quiet is for how long nothing may have changed: the scheduler and the
	// controllers may be about to react.
	quiet = time.Second
	// draPatience bounds a wait, together with draPatiencePerPod.
	draPatience       = 2 * time.Minute
	draPatiencePerPod = 100 * time.Millisecond
)

// draCluster is a cluster with a real scheduler, of which all that is in it is a
// plan's.
type draCluster struct {
	client kubernetes.Interface
	plan   *draPlan
	// queued says how many pods the scheduler is going to try.
	queued func(context.Context) (int, error)
}

// offer creates all but the pods.
func (c *draCluster) offer(ctx context.Context) error {
	ns, err := c.client.CoreV1().Namespaces().Get(ctx, draNamespace, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get namespace: %w", err)
	}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[resourcev1.DRAAdminNamespaceLabelKey] = "true" // claims here may ask for administrative access
	if _, err := c.client.CoreV1().Namespaces().Update(ctx, ns, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("label namespace: %w", err)
	}
	dra := c.client.ResourceV1()
	if _, err := dra.DeviceClasses().Create(ctx, draClass(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create device class: %w", err)
	}
	for _, s := range c.plan.slices {
		if _, err := dra.ResourceSlices().Create(ctx, s, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create slice %s: %w", s.Name, err)
		}
	}
	for _, claim := range c.plan.claims {
		if _, err := dra.ResourceClaims(draNamespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create claim %s: %w", claim.Name, err)
		}
	}
	for _, node := range c.plan.nodes {
		if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
	}
	return nil
}

// play lets the scheduler settle with a few of the pods, while there is room, with
// all of them, and when some have been deleted: what is freed goes to those who wait.
// It returns what there was each time.
func (c *draCluster) play(ctx context.Context, say func(string, ...any)) (states []*DRAObjects, err error) {
	few := len(c.plan.pods) / 8
	for _, stage := range []struct {
		name string
		do   func() error
	}{
		{"few pods", func() error { return c.create(ctx, c.plan.pods[:few]) }},
		{"all pods", func() error { return c.create(ctx, c.plan.pods[few:]) }},
		{"some pods deleted", func() error { return c.remove(ctx, c.plan.deleted) }},
	} {
		if err := stage.do(); err != nil {
			return nil, err
		}
		say("%s: waiting for the scheduler to settle", stage.name)
		objects, err := c.settle(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", stage.name, err)
		}
		objects.When = stage.name
		states = append(states, objects)
	}
	return states, nil
}

func (c *draCluster) create(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if _, err := c.client.CoreV1().Pods(draNamespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

func (c *draCluster) remove(ctx context.Context, names []string) error {
	now := int64(0)
	for _, name := range names {
		err := c.client.CoreV1().Pods(draNamespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete pod %s: %w", name, err)
		}
	}
	return nil
}

// settle waits until the scheduler has dealt with every pod, nobody holds anything
// for a pod that is gone, and nothing changes any more.
func (c *draCluster) settle(ctx context.Context) (*DRAObjects, error) {
	limit := draPatience + time.Duration(len(c.plan.pods))*draPatiencePerPod
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("given up after %s", limit))
	defer cancel()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	since, before, why := time.Now(), "", errors.New("nothing has been listed")
	for {
		objects, err := c.list(ctx)
		if err == nil {
			if version := objects.version(); version != before {
				since, before = time.Now(), version
			}
			err = unsettled(objects)
		}
		if err == nil {
			err = c.idle(ctx, since)
		}
		if err == nil {
			return objects, nil
		}
		if ctx.Err() == nil {
			why = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the scheduler to settle: %w; last seen: %w", context.Cause(ctx), why)
		}
	}
}

// idle says what keeps the scheduler from being done, nil when nothing does.
func (c *draCluster) idle(ctx context.Context, since time.Time) error {
	switch n, err := c.queued(ctx); {
	case err != nil:
		return err
	case n > 0:
		return fmt.Errorf("%d pods are in the scheduler's queues", n)
	case time.Since(since) < quiet:
		return errors.New("objects still change")
	}
	return nil
}

// list reads everything from etcd: without a resourceVersion no cache answers that
// may be behind.
func (c *draCluster) list(ctx context.Context) (*DRAObjects, error) {
	all := metav1.ListOptions{}
	nodes, err := c.client.CoreV1().Nodes().List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	pods, err := c.client.CoreV1().Pods("").List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	classes, err := c.client.ResourceV1().DeviceClasses().List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list device classes: %w", err)
	}
	offered, err := c.client.ResourceV1().ResourceSlices().List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list slices: %w", err)
	}
	claims, err := c.client.ResourceV1().ResourceClaims("").List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	return &DRAObjects{Nodes: nodes.Items, Pods: pods.Items, Classes: classes.Items, Slices: offered.Items, Claims: claims.Items}, nil
}

// version changes with any pod and any claim. Nodes have heartbeats, and do not
// count.
func (o *DRAObjects) version() string {
	var b strings.Builder
	for i := range o.Pods {
		b.WriteString(string(o.Pods[i].UID) + o.Pods[i].ResourceVersion + " ")
	}
	for i := range o.Claims {
		b.WriteString(string(o.Claims[i].UID) + o.Claims[i].ResourceVersion + " ")
	}
	return b.String()
}

// unsettled says what is still to happen, nil when nothing is.
func unsettled(o *DRAObjects) error {
	exists := map[types.UID]bool{}
	for i := range o.Pods {
		pod := &o.Pods[i]
		exists[pod.UID] = true
		if pod.DeletionTimestamp != nil {
			return fmt.Errorf("pod %s is being deleted", pod.Name)
		}
		if pod.Spec.NodeName == "" && !isUnschedulable(pod) {
			return fmt.Errorf("pod %s is neither bound nor reported unschedulable", pod.Name)
		}
	}
	for i := range o.Claims {
		claim := &o.Claims[i]
		for _, owner := range claim.OwnerReferences {
			if !exists[owner.UID] {
				return fmt.Errorf("claim %s belongs to pod %s, which is gone", claim.Name, owner.Name)
			}
		}
		for _, user := range claim.Status.ReservedFor {
			if !exists[user.UID] {
				return fmt.Errorf("claim %s is reserved for pod %s, which is gone", claim.Name, user.Name)
			}
		}
		if claim.Status.Allocation != nil && len(claim.Status.ReservedFor) == 0 {
			return fmt.Errorf("claim %s holds devices for nobody", claim.Name)
		}
	}
	return nil
}

func isUnschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}
