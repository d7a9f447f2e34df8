package watch

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// position is how far a watch has come. Two versions describe a store: that of the
// last change it holds, which is the same in every replica that has seen it and is
// published with the numbers; and the position, up to which it is known that nothing
// else has changed. A store that only counts GPUs may stand at a change of last
// week, with a position that is a second old.
//
// Events that are left out, and the bookmarks that an API server sends every minute,
// move the position alone. They are not handed to the reflector. A watch that breaks
// is taken up at the position all the same.
type position struct {
	mu sync.Mutex
	// passed is the version of the last event that was handed on, or of the list.
	passed string
	// seen is that of the last one at all, in a buffer that is used again: nearly all
	// events of a cluster come by here and go no further.
	seen []byte
}

// pass notes an event that is handed on, or a list.
func (p *position) pass(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed, p.seen = version, append(p.seen[:0], version...)
}

// see notes an event that is not.
func (p *position) see(version []byte) {
	if len(version) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen[:0], version...)
}

// of is the position of a store that has come to version: what has been seen, if the
// store holds all that was handed on before. It is also where a watch has to be taken
// up that client-go would take up at version.
func (p *position) of(version string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if version != "" && version == p.passed {
		return string(p.seen)
	}
	return version
}

// ahead reports whether more has been handed on than a store holds that has come to
// version.
func (p *position) ahead(version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed != "" && p.passed != version
}

// streams reports whether a watch begins with all there is. The versions of such
// events are those of the objects, and no positions.
func streams(o metav1.ListOptions) bool { return o.SendInitialEvents != nil && *o.SendInitialEvents }

// track keeps the position of a watch by a typed client, and its bookmarks from the
// reflector. It counts what comes by.
func (p *position) track(inner apiwatch.Interface, initial bool, count *stats) apiwatch.Interface {
	t := &tracked{inner: inner, out: make(chan apiwatch.Event), stopped: make(chan struct{}), stats: count, open: count.connect()}
	go t.forward(p, initial)
	return t
}

type tracked struct {
	stats   *stats
	open    *connection
	inner   apiwatch.Interface
	out     chan apiwatch.Event
	once    sync.Once
	stopped chan struct{}
}

func (t *tracked) ResultChan() <-chan apiwatch.Event { return t.out }

func (t *tracked) Stop() {
	t.open.end(EndStopped) // if it has not ended by itself
	t.once.Do(func() { close(t.stopped) })
	t.inner.Stop()
}

// forward ends when the watch does, or when nobody listens any more.
func (t *tracked) forward(p *position, initial bool) {
	defer close(t.out)
	defer t.open.end(EndClosed)
	for event := range t.inner.ResultChan() {
		object, err := meta.Accessor(event.Object)
		if err != nil {
			t.open.told(event.Object) // a Status
		} else {
			t.count(event)
		}
		switch {
		case err != nil:
		case event.Type == apiwatch.Bookmark && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
			initial = false
			p.pass(object.GetResourceVersion())
		case event.Type == apiwatch.Bookmark:
			p.see([]byte(object.GetResourceVersion()))
			continue
		case !initial:
			p.pass(object.GetResourceVersion())
		}
		select {
		case t.out <- event:
		case <-t.stopped:
			return
		}
	}
}

func (t *tracked) count(event apiwatch.Event) {
	if event.Type == apiwatch.Bookmark {
		t.stats.bookmarks.Add(1)
		return
	}
	t.stats.decoded.Add(1)
	t.stats.handed(0)
}
