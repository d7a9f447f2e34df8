package watch

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gpu-summary/gpu-summary-controller/internal/discover"
)

// SourceStats is what has come by on the way of one resource, from the API server to
// the store, since the source was made. Those of DRA are made anew when DRA has been
// away.
type SourceStats struct {
	// Resource is its name as RBAC has it.
	Resource string
	// Synced is whether the store has been complete, and Failure what the last request
	// met, nil if it succeeded.
	Synced  bool
	Failure error

	// Connected is since when the present watch is open, zero while there is none.
	Connected time.Time
	// Lists counts how often everything was read, in a stream or in pages. One is the
	// beginning, and all others are relists. LastList is when the last one began.
	Lists    int64
	LastList time.Time
	// Expired counts answers that the version we had was too old (410).
	Expired     int64
	LastExpired time.Time
	// Ends counts watches that have ended, by why.
	Ends map[End]int64
	// Bookmarks counts events that only say how far the server is.
	Bookmarks int64

	// HandedOn are the objects, in events and lists, that went on to the FIFO, and
	// Dropped those that did not, because they are in no number. Decoded of them were
	// decoded; the others were passed over in the buffer of the connection.
	HandedOn, Dropped, Decoded int64
	// BytesHandedOn and BytesDropped are the sizes of those objects. A typed client does
	// not tell; then Measured is false and both are 0.
	BytesHandedOn, BytesDropped int64
	Measured                    bool
	// Undecodable counts versions of objects that could not be decoded, and Missing is
	// of how many the newest version is one: the store has an older one, or none.
	Undecodable int64
	Missing     int

	// Kept is how many objects the store has, and KeptBytes about how large that is
	// (sizeOf says how it is estimated).
	Kept      int
	KeptBytes int64
	// Version is that of the last change in the store, and Position that up to which it
	// has everything. Behind is whether more has been handed on than it holds, the last
	// of it at LastHandedOn.
	Version, Position string
	Behind            bool
	LastHandedOn      time.Time
}

// Resources names all that may be watched, those of DRA last.
func (w *Watch) Resources() []string {
	var names []string
	for _, s := range w.sources() {
		names = append(names, s.resource)
	}
	return append(names, discover.DRAResources...)
}

// Stats says for each watched resource how it is. It looks at every object that is
// kept; reading events costs a few additions more for it, and no memory.
func (w *Watch) Stats() []SourceStats {
	sources := w.sources()
	if s := w.dra.current(); s != nil {
		sources = append(sources[:len(sources):len(sources)], s.sources()...)
	}
	out := make([]SourceStats, 0, len(sources))
	for _, s := range sources {
		out = append(out, s.read())
	}
	return out
}

// current is the session that is counted, nil if none is.
func (d *dra) current() *draSession {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.session
}

func (s *source) read() SourceStats {
	out := SourceStats{Resource: s.resource, Synced: s.err() == nil, Version: s.version()}
	s.mu.Lock()
	if s.failure != nil { // a nil *SyncError is no nil error
		out.Failure = s.failure
	}
	s.mu.Unlock()
	out.Position, out.Behind = s.reach.at(out.Version), s.reach.behind(out.Version)
	out.Kept, out.KeptBytes = sizeOf(s.informer.GetIndexer().List())
	s.reach.numbers().read(&out)
	return out
}

// stats counts for one resource. Every event of a cluster comes by, so what is counted
// for each is atomic, and a mutex is for what is rare.
type stats struct {
	handedOn, dropped, decoded  atomic.Int64
	bytesHandedOn, bytesDropped atomic.Int64
	bookmarks, lists, expired   atomic.Int64

	lastHandedOn, lastList, lastExpired instant

	undecodable undecodables
	measured    bool // sizes are known

	mu      sync.Mutex
	current *connection
	ends    map[End]int64
}

// instant is a time that can be read while it is written; the zero value is none.
type instant struct{ nanoseconds atomic.Int64 }

func (i *instant) now() { i.nanoseconds.Store(time.Now().UnixNano()) }

func (i *instant) time() time.Time {
	if n := i.nanoseconds.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// listed notes that everything is being read.
func (s *stats) listed() {
	s.lists.Add(1)
	s.lastList.now()
}

// failed notes a request that failed, if it was about a version that is too old.
func (s *stats) failed(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		s.expired.Add(1)
		s.lastExpired.now()
	}
}

// handed notes an object that went on, of so many bytes if that is known.
func (s *stats) handed(bytes int) {
	s.handedOn.Add(1)
	s.bytesHandedOn.Add(int64(bytes))
	s.lastHandedOn.now()
}

// drop notes an object that did not.
func (s *stats) drop(bytes int) {
	s.dropped.Add(1)
	s.bytesDropped.Add(int64(bytes))
}

func (s *stats) read(out *SourceStats) {
	out.HandedOn, out.Dropped, out.Decoded = s.handedOn.Load(), s.dropped.Load(), s.decoded.Load()
	out.BytesHandedOn, out.BytesDropped = s.bytesHandedOn.Load(), s.bytesDropped.Load()
	out.Measured = s.measured
	out.Bookmarks, out.Lists, out.Expired = s.bookmarks.Load(), s.lists.Load(), s.expired.Load()
	out.LastHandedOn, out.LastList, out.LastExpired = s.lastHandedOn.time(), s.lastList.time(), s.lastExpired.time()
	out.Undecodable, out.Missing = s.undecodable.total.Load(), int(s.undecodable.missing.Load())
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Ends = maps.Clone(s.ends)
	if s.current != nil {
		out.Connected = s.current.since
	}
}
