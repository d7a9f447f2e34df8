package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
	"github.com/gpu-summary/gpu-summary-controller/lab/progress"
)

const (
	// loaders is how many requests are under way at once while the lab is filled.
	loaders = 32
	// labTimeout bounds the start of the control plane, which may have to be built.
	labTimeout = 30 * time.Minute
)

// lab is the cold start against a real etcd and kube-apiserver, at the first size. The other components
// stay out of it: on two cores they would be measured too.
func lab(ctx context.Context, r *runner, name string) (err error) {
	size := r.Sizes[0]
	starting, cancel := context.WithTimeoutCause(ctx, labTimeout, fmt.Errorf("the control plane did not start within %v", labTimeout))
	defer cancel()
	p, err := plane.Start(starting, plane.Options{Progress: r.Progress, Without: []string{plane.Scheduler, plane.ControllerManager, plane.KWOK}})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := p.Stop(); err == nil {
			err = stopErr
		}
	}()
	sample, err := server.NewSample(size.cluster())
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if err := r.fill(ctx, client, sample, size); err != nil {
		return err
	}
	l := &labTarget{plane: p, client: client, expected: sample.Expected()}
	var steps []step
	for _, w := range []who{controller, drain, textbook} {
		steps = append(steps, step{key{Scenario: name, Size: size.String(), Who: w, pods: size.Pods}, func(ctx context.Context) (metrics, error) {
			return r.coldLab(ctx, w, l)
		}})
	}
	return r.take(ctx, name+" at "+size.String(), steps)
}

// fill creates the cluster. Nodes come first: pods on nodes that do not exist are another matter.
func (r *runner) fill(ctx context.Context, client kubernetes.Interface, s *server.Sample, size Size) error {
	for _, n := range append(s.Namespaces(), namespace) {
		if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create namespace: %w", err)
		}
		// What the controller manager would do, which is not there.
		if _, err := client.CoreV1().ServiceAccounts(n).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create service account: %w", err)
		}
	}
	err := r.each(ctx, size.Nodes, "create nodes", func(ctx context.Context, i int) error {
		node, err := s.Node(i)
		if err == nil {
			_, err = client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.each(ctx, size.Pods, "create pods", func(ctx context.Context, i int) error {
		pod, err := s.Pod(i)
		if err == nil {
			_, err = client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		}
		return err
	})
}

// each does something for each number below n, many at once.
func (r *runner) each(ctx context.Context, n int, what string, do func(ctx context.Context, i int) error) error {
	bar := progress.New(r.Progress, n, what)
	defer bar.Done()
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range loaders {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := do(ctx, i); err != nil {
					return fmt.Errorf("%s: number %d: %w", what, i, err)
				}
				bar.Add(1)
			}
		})
	}
	return g.Wait()
}

// labTarget is a control plane with a cluster in it.
type labTarget struct {
	plane    *plane.Plane
	client   kubernetes.Interface
	expected server.Expected
}

func (r *runner) coldLab(ctx context.Context, w who, l *labTarget) (metrics, error) {
	configMaps := l.client.CoreV1().ConfigMaps(namespace)
	if err := configMaps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return nil, fmt.Errorf("remove earlier ConfigMaps: %w", err)
	}
	published, err := configMaps.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("watch ConfigMaps: %w", err)
	}
	defer published.Stop()
	apiserver := &process{name: plane.APIServer, pid: l.plane.Component(plane.APIServer).Pid()}
	before, err := apiserver.cpu()
	if err != nil {
		return nil, err
	}
	e, err := r.enter(ctx, w, &target{kubeconfig: l.plane.Kubeconfig()})
	if err != nil {
		return nil, err
	}
	defer e.stop()
	ctx, cancel := context.WithTimeoutCause(ctx, coldTimeout, fmt.Errorf("no right summary within %v", coldTimeout))
	defer cancel()
	var ready time.Time
	if w == drain {
		ready, err = e.ready(ctx, coldTimeout)
	} else {
		ready, err = e.rightOnWatch(ctx, published, l.expected)
	}
	if err != nil {
		return nil, err
	}
	out := metrics{wallSeconds: ready.Sub(e.started).Seconds()}
	if out[cpuSeconds], err = e.cpu(); err != nil {
		return nil, err
	}
	if err := e.rest(ctx, out); err != nil {
		return nil, err
	}
	after, err := apiserver.cpu()
	out[serverSeconds] = after - before
	return out, err
}

// rightOnWatch waits until the ConfigMaps that a watch shows are right.
func (e *entry) rightOnWatch(ctx context.Context, w watch.Interface, expected server.Expected) (time.Time, error) {
	judge := server.Judge{Summary: summaryName, Expected: expected}
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return time.Time{}, errors.New("the watch of the ConfigMaps ended")
			}
			cm, ok := event.Object.(*corev1.ConfigMap)
			if ok && event.Type != watch.Deleted && judge.See(cm) {
				return time.Now(), nil
			}
		case <-e.ended:
			return time.Time{}, e.lost()
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}
