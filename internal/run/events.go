package run

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/reconcile"
)

// events are those of one leader, nil if none are to be written.
func (o *Options) events(client kubernetes.Interface, p *publish.Publisher) *publish.Events {
	if !o.Events {
		return nil
	}
	return publish.NewEvents(client.EventsV1(), p, o.EventDelay)
}

// told lets Events be made of what passes come to.
func told(o reconcile.Options, events *publish.Events) reconcile.Options {
	if events == nil {
		return o
	}
	observe, publisher := o.Observe, o.Publish
	o.Observe = func() (count.World, error) {
		world, err := observe()
		if err != nil {
			events.Passed(nil, err)
		}
		return world, err
	}
	o.Publish = func(ctx context.Context, snap *count.Snapshot) (publish.Result, error) {
		result, err := publisher(ctx, snap)
		events.Passed(snap, err)
		return result, err
	}
	return o
}
