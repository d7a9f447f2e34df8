package load

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ensureNamespace also waits for the namespace's default ServiceAccount, which the
// controller manager makes: until it is there admission refuses every pod.
func (l *loader) ensureNamespace(ctx context.Context) error {
	name := l.o.Namespace
	namespaces := l.client.CoreV1().Namespaces()
	found, err := namespaces.Get(ctx, name, metav1.GetOptions{})
	reused := err == nil
	if apierrors.IsNotFound(err) {
		found, err = namespaces.Create(ctx, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{SourceLabel: Source}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	if found.DeletionTimestamp != nil {
		return fmt.Errorf("namespace %s is being deleted: load again when it is gone", name)
	}
	err = l.wait(ctx, "serviceaccount "+name+"/default", func(ctx context.Context) (left int, err error) {
		_, err = l.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return 1, nil
		}
		return 0, err
	})
	if err != nil {
		return err
	}
	l.count(reused)
	return nil
}

// settle waits until every pod is in the phase of the record. As a rule it finds
// that at once: the load has set every phase itself, and this is the check that
// nobody has changed or deleted a pod meanwhile.
func (l *loader) settle(ctx context.Context) error {
	var example string
	err := l.wait(ctx, "pods to reach the phase of the trace", func(ctx context.Context) (left int, err error) {
		left, example, err = l.unsettled(ctx)
		return left, err
	})
	if err != nil && example != "" {
		return fmt.Errorf("%w: %s", err, example)
	}
	return err
}

// unsettled counts the pods that are missing or in another phase, and shows one.
func (l *loader) unsettled(ctx context.Context) (left int, example string, err error) {
	phases := make(map[string]corev1.PodPhase, len(l.cluster.Pods))
	err = l.eachPod(ctx, l.o.Namespace, SourceLabel+"="+Source, func(pod *corev1.Pod) error {
		phases[pod.Name] = pod.Status.Phase
		return nil
	})
	if err != nil {
		return 0, "", listed("pods of namespace "+l.o.Namespace, err)
	}
	for _, p := range l.cluster.Pods {
		phase, ok := phases[p.Name]
		if phase == p.Phase {
			continue
		}
		if !ok {
			phase = "gone"
		}
		left++
		example = fmt.Sprintf("pod %s/%s is %s, not %s", l.o.Namespace, p.Name, phase, p.Phase)
	}
	return left, example, nil
}

// wait calls check until nothing is left. It gives up when nothing has changed for
// Options.Patience: a bound on the whole would be wrong for one size of cluster
// or the other.
func (l *loader) wait(ctx context.Context, what string, check func(context.Context) (left int, err error)) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	changed, before := time.Now(), -1
	for {
		left, err := check(ctx)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if left == 0 {
			return nil
		}
		if left != before {
			changed, before = time.Now(), left
		}
		if time.Since(changed) > l.o.Patience {
			return fmt.Errorf("wait for %s: %d left and no change for %s", what, left, l.o.Patience)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
