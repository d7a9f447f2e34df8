package publish

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// small is a limit at which a few dozen nodes need several objects.
const small = 4000

var both = Options{Namespace: "ns", Name: "gpu-summary", CapacityName: "gpu-capacity", MaxObjectBytes: small}

// bench is a publisher and all around it.
type bench struct {
	*testing.T
	server *server
	cache  *watched
	*Publisher
	seen int // the version of pods that was observed last
}

func newBench(t *testing.T, o Options) *bench {
	b := &bench{T: t, server: newServer()}
	b.cache = &watched{server: b.server}
	b.restart(o)
	return b
}

// restart loses everything that is not on the server.
func (b *bench) restart(o Options) {
	b.cache.sync()
	b.Publisher = New(b.server, o, b.cache)
}

// snap counts a world as seen now.
func (b *bench) snap(requested map[string]int64) *count.Snapshot {
	w := world(requested)
	b.seen = b.server.version
	w.Observed = count.Observed{Pods: strconv.Itoa(b.seen), Nodes: strconv.Itoa(b.seen)}
	return count.Take(w)
}

// publish publishes with a cache that is current and returns what was written.
func (b *bench) publish(requested map[string]int64) Result {
	b.Helper()
	b.cache.sync()
	result, err := b.Publish(b.Context(), b.snap(requested))
	if err != nil {
		b.Fatal(err)
	}
	return result
}

func (b *bench) writes(requested map[string]int64) []string {
	b.Helper()
	b.server.writes = nil
	b.publish(requested)
	return b.server.writes
}

// shows fails the test unless a reader finds exactly this, everywhere.
func (b *bench) shows(requested map[string]int64) {
	b.Helper()
	for _, name := range []string{"gpu-summary", "gpu-capacity"} {
		if err := b.differs(name, requested); err != nil {
			b.Errorf("%s: %v", name, err)
		}
	}
}

func (b *bench) differs(name string, requested map[string]int64) error {
	_, rows, err := b.server.read(name)
	if err != nil {
		return err
	}
	s := b.set(name)
	want := rendered(s, b.snap(requested))
	other := newServer()
	other.objects[name] = configMapWith(want.data)
	_, wanted, err := other.read(name)
	if err == nil && !maps.Equal(rows, wanted) {
		err = fmt.Errorf("%d rows, want %d:\n%v\n%v", len(rows), len(wanted), rows, wanted)
	}
	return err
}

func (b *bench) set(name string) set {
	for _, s := range b.sets {
		if s.name == name {
			return s
		}
	}
	b.Fatalf("no set %s", name)
	return set{}
}

func cluster(nodes int) map[string]int64 {
	requested := map[string]int64{}
	for i, node := range names(nodes) {
		requested[node] = int64(i % 9)
	}
	return requested
}
