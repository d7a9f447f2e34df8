package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const playedNode = "played"

// TestRollingUpdate of the controller while pods come and go: somebody always publishes,
// and never two.
func TestRollingUpdate(t *testing.T) {
	e := newEnv(t)
	e.played(playedNode, 64)
	e.running(holder("a", 2))
	stop := e.load()
	e.eventually("the load to be published", func() error {
		cm, err := e.site.configMap(t.Context())
		if err == nil && (cm.Data[playedNode] == "" || cm.Data[playedNode] == "0") {
			err = fmt.Errorf("row %q", cm.Data[playedNode])
		}
		return err
	})
	before := len(e.writes())
	holders := e.holders()
	old := map[string]bool{}
	for _, p := range e.site.pods(t.Context()) {
		old[p.Name] = true
	}
	_, err := e.site.helm(t.Context(), "upgrade", e.site.values("podAnnotations: {updated: for-"+e.namespace+"}\n"))
	e.must(err)
	e.eventually("the new replicas to be at work", func() error {
		for _, p := range e.site.pods(t.Context()) {
			if old[p.Name] {
				return fmt.Errorf("%s is still there", p.Name)
			}
		}
		return e.site.working(t.Context(), 2)
	})
	stop()
	e.settled(2)
	e.row(playedNode, 0)
	gap, writers := e.oneWriterAtATime(e.writes()[before:])
	t.Logf("%d replicas wrote, with %s at most between two writes", writers, gap.Round(time.Millisecond))
	if limit := e.leaseDuration(); gap >= limit {
		t.Errorf("nothing was written for %s, as if a leader had died whose lease is of %s", gap, limit)
	}
	if writers < 2 {
		t.Error("the leader was not replaced")
	}
	e.gaveBack(holders())
}

// lease is how long one replica has it, or nobody: "".
type lease struct {
	holder            string
	acquired, renewed time.Time // the latter for the last time
}

func (l lease) String() string {
	return fmt.Sprintf("%q from %s to %s", l.holder, l.acquired.Format(time.TimeOnly), l.renewed.Format(time.TimeOnly))
}

// holders watches who holds the lease. The function it returns ends that, and returns
// them in their order.
func (e *env) holders() func() []lease {
	e.Helper()
	leases := e.client.CoordinationV1().Leases(e.site.namespace)
	now, err := leases.Get(e.Context(), e.site.controller(), metav1.GetOptions{})
	e.must(err)
	held := []lease{leaseOf(now)}
	watch, err := leases.Watch(e.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + now.Name, ResourceVersion: now.ResourceVersion})
	e.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			object, ok := event.Object.(*coordinationv1.Lease)
			if !ok {
				continue
			}
			now := leaseOf(object)
			if last := &held[len(held)-1]; last.holder == now.holder {
				*last = now
			} else {
				held = append(held, now)
			}
		}
	}()
	return func() []lease { watch.Stop(); <-done; return held }
}

func leaseOf(l *coordinationv1.Lease) lease {
	return lease{ptr.Deref(l.Spec.HolderIdentity, ""), ptr.Deref(l.Spec.AcquireTime, metav1.MicroTime{}).Time, ptr.Deref(l.Spec.RenewTime, metav1.MicroTime{}).Time}
}

// gaveBack: everybody who held the lease has given it back, and nobody had to wait until
// it expired.
func (e *env) gaveBack(held []lease) {
	e.Helper()
	for i := 1; i < len(held); i++ {
		if held[i-1].holder != "" && held[i].holder != "" {
			e.Errorf("%s took the lease when it had expired: %s did not give it back", held[i].holder, held[i-1].holder)
		}
	}
}

// load lets pods come and go on the played node until stop is called, and then removes
// the last.
func (e *env) load() (stop func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(e.Context())
	now := int64(0)
	pods := e.client.CoreV1().Pods(e.namespace)
	remove := func(name string) {
		if err := pods.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			e.Errorf("load: %v", err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		last := ""
		for i := 0; ctx.Err() == nil; i++ {
			name := fmt.Sprintf("load-%d", i)
			// Another number each time, so that each is a reason to write.
			if _, err := pods.Create(context.WithoutCancel(ctx), bound(name, playedNode, 1+i%7), metav1.CreateOptions{}); err != nil {
				e.Errorf("load: %v", err)
				return
			}
			if last != "" {
				remove(last)
			}
			last = name
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		remove(last)
	})
	return func() { cancel(); wg.Wait() }
}
