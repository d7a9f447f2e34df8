package publish

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// flushTime is how long the end waits for Events that are on their way. It is well
// within the time that a leader has to stop in.
const flushTime = 2 * time.Second

// Events tells of changes of state. Passed says what happened, Run writes it down.
// Each leader needs new ones.
type Events struct {
	client    eventsv1client.EventsGetter
	publisher *Publisher
	passed    chan struct{}

	mu     sync.Mutex
	states *States
}

// NewEvents makes the Events of what a publisher does. A node has to be
// overcommitted, or right again, for so long before it is told.
func NewEvents(client eventsv1client.EventsGetter, p *Publisher, delay time.Duration) *Events {
	return &Events{client: client, publisher: p, passed: make(chan struct{}, 1), states: NewStates(p.Namespace, delay)}
}

// Passed takes what a pass came to: what was counted, nil if the caches could not be
// read, and why it could not be published. The goroutine that publishes calls it. It
// waits for nothing.
func (e *Events) Passed(snap *count.Snapshot, err error) {
	pass := Pass{Snapshot: snap, Sets: e.publisher.Sets(), Err: err}
	e.mu.Lock()
	e.states.Observe(pass, time.Now())
	e.mu.Unlock()
	select {
	case e.passed <- struct{}{}:
	default:
	}
}

// Run tells what there is to tell until ctx ends, and waits a moment for what is on
// its way.
func (e *Events) Run(ctx context.Context) {
	log := klog.FromContext(ctx)
	// Recording outlasts ctx, so that the last Events get through. What fails is
	// logged by the sink.
	recording, stop := context.WithCancel(context.WithoutCancel(ctx))
	sink := newSink(e.client)
	broadcaster := events.NewBroadcaster(sink)
	defer func() {
		stop()
		sink.end()
		broadcaster.Shutdown()
	}()
	if err := broadcaster.StartRecordingToSinkWithContext(recording); err != nil {
		log.Error(err, "No Events will be written")
		return
	}
	recorder := broadcaster.NewRecorder(runtime.NewScheme(), manager).WithLogger(log)
	for {
		ended := ctx.Err() != nil
		// Once more after the end: a leader of an earlier term is told to stop as soon as
		// it is fenced, and that it was is the last thing that it has to say.
		due, next := e.due()
		for _, event := range due {
			log.V(3).Info("Event", "about", event.Regarding.Kind+" "+event.Regarding.Name, "reason", event.Reason, "note", event.Note)
			sink.expect()
			tell(recorder, event)
		}
		if ended {
			break
		}
		e.wait(ctx, next)
	}
	flushing, cancel := context.WithTimeout(recording, flushTime)
	defer cancel()
	if left := sink.flush(flushing); left > 0 {
		log.Info("Not all Events were written before the end", "left", left, "waited", flushTime)
	}
}

func tell(recorder events.EventRecorder, event Event) {
	var related runtime.Object // a nil pointer would be one
	if event.Related != nil {
		related = event.Related
	}
	recorder.Eventf(&event.Regarding, related, event.Type, event.Reason, event.Action, "%s", event.Note)
}

func (e *Events) due() ([]Event, time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.states.Due(time.Now())
}

// wait returns after a pass, at a time, or when ctx has ended.
func (e *Events) wait(ctx context.Context, next time.Time) {
	var timeout <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(time.Until(next))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-e.passed:
	case <-timeout:
	case <-ctx.Done():
	}
}
