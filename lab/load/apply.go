package load

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/gpu-summary/gpu-summary-controller/lab/progress"
)

// Options say where and how a cluster is loaded. The zero value is usable.
type Options struct {
	// Namespace takes the pods; it is created when it does not exist.
	// Default "openb".
	Namespace string
	// Workers is how many requests are under way at once. Default 16: on two
	// cores more only makes each request wait longer.
	Workers int
	// Progress shows how far the load is. Default: nowhere.
	Progress io.Writer
	// Patience is how long a wait goes on while nothing changes. Default 1m.
	Patience time.Duration
}

// Result is what a load did.
type Result struct {
	// Objects are the namespace, the nodes and the pods of the cluster.
	Objects int
	// Reused is how many of them an earlier load had created.
	Reused int
	// Elapsed is the time until every pod was in its phase.
	Elapsed time.Duration
}

// loader is one load under way.
type loader struct {
	client    kubernetes.Interface
	cluster   *Cluster
	placement map[string]string
	o         Options
	have      *survey
	bar       *progress.Bar
	done      atomic.Int64
	reused    atomic.Int64
}

// Apply creates the cluster on the API server behind cfg, nodes first so that no
// pod is ever bound to a node that does not exist, and returns when every pod is
// in the phase of the record. What an earlier load created is kept, when it is
// the same; when it is not, or a name belongs to somebody else, the error names
// the object and nothing has been created. The first object that fails ends the load.
func Apply(ctx context.Context, cfg *rest.Config, c *Cluster, o Options) (Result, error) {
	start := time.Now()
	o.Namespace = cmp.Or(o.Namespace, "openb")
	o.Workers = cmp.Or(max(o.Workers, 0), 16)
	o.Patience = cmp.Or(o.Patience, time.Minute)
	placement, err := Place(c)
	if err != nil {
		return Result{}, err
	}
	client, err := kubernetes.NewForConfig(fast(cfg))
	if err != nil {
		return Result{}, fmt.Errorf("make a client: %w", err)
	}
	l := &loader{client: client, cluster: c, placement: placement, o: o}
	total := 1 + len(c.Nodes) + len(c.Pods)
	err = l.run(ctx, total)
	if err != nil && ctx.Err() != nil {
		// Which request was cut off says nothing; that it was on purpose does.
		err = fmt.Errorf("load stopped after %d of %d objects: %w", l.done.Load(), total, context.Cause(ctx))
	}
	return Result{Objects: int(l.done.Load()), Reused: int(l.reused.Load()), Elapsed: time.Since(start)}, err
}

// fast lifts the client's own brakes: the API server has better ones.
func fast(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cfg.UserAgent = "gpu-summary-lab/load"
	return cfg
}

func (l *loader) run(ctx context.Context, total int) (err error) {
	if l.have, err = l.survey(ctx); err != nil {
		return err
	}
	// Not before: what is refused should not show a bar.
	l.bar = progress.New(l.o.Progress, total, "objects")
	defer l.bar.Done()
	if err := l.ensureNamespace(ctx); err != nil {
		return err
	}
	if err := l.each(ctx, len(l.cluster.Nodes), l.ensureNode); err != nil {
		return err
	}
	if err := l.each(ctx, len(l.cluster.Pods), l.ensurePod); err != nil {
		return err
	}
	l.bar.Done()
	return l.settle(ctx)
}

// each calls do for 0…n-1 on the workers, in order of start. The first error ends it.
func (l *loader) each(ctx context.Context, n int, do func(ctx context.Context, i int) (reused bool, err error)) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(l.o.Workers)
	for i := 0; i < n && gctx.Err() == nil; i++ {
		g.Go(func() error {
			reused, err := do(gctx, i)
			if err == nil {
				l.count(reused)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

func (l *loader) count(reused bool) {
	l.done.Add(1)
	if reused {
		l.reused.Add(1)
	}
	l.bar.Add(1)
}

func (l *loader) ensureNode(ctx context.Context, i int) (reused bool, err error) {
	n := &l.cluster.Nodes[i]
	if _, ok := l.have.nodes[n.Name]; ok {
		return true, nil
	}
	if _, err := l.client.CoreV1().Nodes().Create(ctx, nodeObject(n, metav1.Now()), metav1.CreateOptions{}); err != nil {
		return false, fmt.Errorf("create node %s: %w", n.Name, err)
	}
	return false, nil
}

func (l *loader) ensurePod(ctx context.Context, i int) (reused bool, err error) {
	p := &l.cluster.Pods[i]
	pod, reused := l.have.pods[p.Name]
	if !reused {
		want := podObject(p, l.o.Namespace, l.placement[p.Name])
		pod, err = l.client.CoreV1().Pods(l.o.Namespace).Create(ctx, want, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("create pod %s/%s: %w", l.o.Namespace, p.Name, err)
		}
	}
	// An earlier load may have been stopped between the two requests.
	if setByLoad(p.Phase) && pod.Status.Phase != p.Phase {
		if err := l.setPhase(ctx, pod, p.Phase); err != nil {
			return false, fmt.Errorf("set pod %s/%s to %s: %w", l.o.Namespace, p.Name, p.Phase, err)
		}
	}
	return reused, nil
}

// setPhase plays the kubelet. Somebody else may write to the pod between our two
// requests, the node lifecycle controller for one; then we look again.
func (l *loader) setPhase(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase) error {
	pods := l.client.CoreV1().Pods(pod.Namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pod.Status = podStatus(pod, phase, metav1.Now())
		_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
		fresh, getErr := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		pod = fresh
		return err
	})
}
