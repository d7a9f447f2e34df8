package publish

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var errLost = errors.New("the connection was lost")

// TestAnyHistory plays clusters that grow and shrink while writes fail or get lost,
// the cache lags, the controller restarts and people edit. After every single write
// a reader must get one of the states that were published, whole, or be told to
// try again; and when the trouble is over everything must be right and nothing left.
func TestAnyHistory(t *testing.T) {
	r := seeded(t)
	whole, moving := 0, 0
	for range 15 {
		h := history{bench: newBench(t, both), rand: r, requested: cluster(r.IntN(50))}
		h.server.wrote = func() {
			for _, name := range []string{"gpu-summary", "gpu-capacity"} {
				if h.look(name) {
					whole++
				} else {
					moving++
				}
			}
		}
		for range 25 {
			h.step()
		}
		h.settle()
		if t.Failed() {
			return
		}
	}
	t.Logf("readers found a whole set %d times and were sent back %d times", whole, moving)
	if whole == 0 || moving == 0 {
		t.Error("one of the two never happened")
	}
}

type history struct {
	*bench
	rand      *rand.Rand
	requested map[string]int64
	// published has every state that a reader may find, by set and by its rows.
	published map[string]bool
	edited    bool // somebody changed rows, and readers cannot know
}

// look reads as documented and reports whether that gave a whole set.
func (h *history) look(name string) bool {
	annotations, rows, err := h.server.read(name)
	if err != nil || h.edited {
		return false
	}
	if !h.published[name+fmt.Sprint(rows)] {
		h.Errorf("%s has %d rows that were never published together, annotations are %v", name, len(rows), annotations)
	}
	if name == "gpu-summary" && annotations[AnnotationRequested] != sum(rows) {
		h.Errorf("%s GPUs are requested in all and %s in the rows", annotations[AnnotationRequested], sum(rows))
	}
	return true
}

func sum(rows map[string]string) string {
	total := 0
	for _, value := range rows {
		n, _ := strconv.Atoi(value)
		total += n
	}
	return strconv.Itoa(total)
}

func (h *history) step() {
	h.change()
	h.disturb()
	h.trouble()
	if h.rand.IntN(3) > 0 {
		h.cache.sync()
	}
	h.remember()
	_, _ = h.Publish(h.Context(), h.snap(h.requested)) // settle sees to it that it ends well
}

// remember adds the present state to what a reader may find.
func (h *history) remember() {
	if h.published == nil {
		h.published = map[string]bool{}
	}
	for _, s := range h.sets {
		other := newServer()
		other.objects[s.name] = configMapWith(rendered(s, h.snap(h.requested)).data)
		_, rows, err := other.read(s.name)
		if err != nil {
			h.Fatal(err)
		}
		h.published[s.name+fmt.Sprint(rows)] = true
	}
}

func (h *history) change() {
	switch h.rand.IntN(6) {
	case 0:
		h.requested = cluster(h.rand.IntN(200))
	case 1:
		maps.DeleteFunc(h.requested, func(string, int64) bool { return h.rand.IntN(10) == 0 })
	default:
		for node := range h.requested {
			if h.rand.IntN(20) == 0 {
				h.requested[node] = int64(h.rand.IntN(9))
			}
		}
	}
}

// disturb is what other people do.
func (h *history) disturb() {
	all := slices.Sorted(maps.Keys(h.server.objects))
	if len(all) == 0 || h.rand.IntN(3) > 0 {
		return
	}
	name := all[h.rand.IntN(len(all))]
	switch h.rand.IntN(8) {
	case 0:
		h.server.put(name, nil)
	case 1:
		h.server.edit(h.T, name, func(cm *corev1.ConfigMap) { cm.Labels = nil })
	case 2:
		h.server.edit(h.T, name, func(cm *corev1.ConfigMap) { cm.Annotations = nil })
		// A base without annotations names no shards.
		h.edited = true
	case 3:
		h.server.edit(h.T, name, func(cm *corev1.ConfigMap) { cm.Data = nil })
		h.edited = true
	case 4:
		h.server.edit(h.T, name, func(cm *corev1.ConfigMap) {
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, AnnotationObserved, "pods@99999999 nodes@88888888 x")
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, AnnotationShards, "1048576")
		})
	case 5:
		h.server.edit(h.T, name, func(cm *corev1.ConfigMap) {
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "example.com/a", "b")
		})
	case 6:
		h.restart(both)
	case 7:
		left := configMapWith(map[string]string{"gpu-node-x": "1"})
		left.Name, left.UID = "gpu-summary-shard-9999", types.UID(fmt.Sprint("left-", h.server.version))
		apply(left, content{data: left.Data, labels: h.labels(), annotations: shardAnnotations("gpu-summary", 9998, "x")})
		h.server.put(left.Name, left)
	}
}

// trouble is what the network and the server do.
func (h *history) trouble() {
	h.server.fail = nil
	if h.rand.IntN(2) == 0 {
		return
	}
	at, before := len(h.server.writes)+h.rand.IntN(12), h.rand.IntN(2) == 0
	h.server.fail = func(n int) (bool, error) {
		if n > at {
			return before, errLost
		}
		return false, nil
	}
}

// settle ends all trouble. A few passes later all must be well.
func (h *history) settle() {
	h.server.fail = nil
	h.remember()
	var errs []error
	for range 6 {
		h.cache.sync()
		_, err := h.Publish(h.Context(), h.snap(h.requested))
		errs = append(errs, err)
	}
	h.cache.sync()
	h.server.writes = nil
	if _, err := h.Publish(h.Context(), h.snap(h.requested)); err != nil || len(h.server.writes) > 0 {
		h.Errorf("it does not come to rest: %v, writes %q, before %v", err, h.server.writes, errs)
	}
	h.shows(h.requested)
	for name, cm := range h.server.objects {
		if cm.Labels == nil {
			continue // it lost them and then its place, across a restart: nobody knows of it
		}
		if !slices.ContainsFunc(h.sets, func(s set) bool { return s.name == name }) && !h.named(name) {
			h.Errorf("%s is left over", name)
		}
	}
}

// named reports whether a base names the shard.
func (h *history) named(name string) bool {
	for _, s := range h.sets {
		for i := range shardsOf(h.server.objects[s.name]) {
			if shardName(s.name, i) == name {
				return true
			}
		}
	}
	return false
}
