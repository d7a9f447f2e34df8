package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/load"
)

// patience bounds the waits. The controller publishes once a second; machines that
// run a whole control plane on two cores have slow moments.
const patience = time.Minute

// follower holds the published ConfigMap as it last was.
type follower struct {
	mu     sync.Mutex
	latest *corev1.ConfigMap
	writes int
	// changed has something in it when there is something new since it was read.
	changed chan struct{}
}

// follow starts to watch the ConfigMap, as one of its readers would.
func (d *demo) follow(ctx context.Context) (*follower, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(d.client, 0,
		informers.WithNamespace(target.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, target.Name).String()
		}))
	f := &follower{changed: make(chan struct{}, 1)}
	_, err := factory.Core().V1().ConfigMaps().TypedInformer().AddTypedEventHandler(coreinformers.ConfigMapHandlerFuncs{
		AddFunc:    f.saw,
		UpdateFunc: func(_, cm *corev1.ConfigMap) { f.saw(cm) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch ConfigMap %s: %w", target, err)
	}
	d.beside.Go(func() {
		factory.StartWithContext(ctx)
		<-ctx.Done()
		factory.Shutdown()
	})
	return f, nil
}

func (f *follower) saw(cm *corev1.ConfigMap) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest == nil || f.latest.ResourceVersion != cm.ResourceVersion {
		f.writes++
	}
	f.latest = cm
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// look returns what is published and how many times that was written.
func (f *follower) look() (p Published, writes int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest == nil {
		return Published{}, 0, errors.New("it does not exist")
	}
	p, err = parse(f.latest)
	return p, f.writes, err
}

// awaitRecount waits until the published numbers are those of the recount.
func (d *demo) awaitRecount(ctx context.Context, f *follower, want load.Totals) (Published, error) {
	begin := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %v", patience))
	defer cancel()
	for {
		published, _, err := f.look()
		if err == nil {
			err = compare(published, want)
		}
		if err == nil {
			d.say("ConfigMap %s equals the recount, in every row, %.1f s after the load", target, time.Since(begin).Seconds())
			return published, nil
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			return Published{}, fmt.Errorf("wait for ConfigMap %s to equal the recount: %w: %w", target, context.Cause(ctx), err)
		}
	}
}
