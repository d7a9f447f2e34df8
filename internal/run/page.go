package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

const (
	// lookEvery is how old what readers of the page and the API see may be.
	lookEvery = time.Second
	// standbyEvery is how often a replica that takes no passes looks for the sake of
	// its history.
	standbyEvery = 30 * time.Second
)

// caches is what a replica knows of the cluster: watch.Watch.
type caches interface {
	World() (count.World, error)
	Synced() map[string]error
}

// onDemand counts when somebody reads, at most once a second and never twice at a
// time: a Service sends readers to any replica, and only the leader takes passes. What
// it counts is not in the metrics, which are the leader's.
type onDemand struct {
	caches  caches
	history *api.History
	one     singleflight.Group

	mu       sync.Mutex
	looked   time.Time // when it was last found to be so
	snapshot *count.Snapshot
	pods     []*count.Pod
}

var errIncomplete = errors.New("the caches are not complete")

// missing says what the caches lack, nil for nothing.
func (d *onDemand) missing() []string {
	synced := d.caches.Synced()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(synced)) {
		if err := synced[name]; err != nil {
			lines = append(lines, err.Error())
		}
	}
	return lines
}

// look returns what is known now. While the caches change faster than they can be
// read, or are not complete, that is what was known before.
func (d *onDemand) look(passed *count.Snapshot) (*count.Snapshot, []*count.Pod) {
	if !d.fresh() {
		_, _, _ = d.one.Do("", func() (any, error) {
			if d.fresh() {
				return nil, nil // somebody has looked since
			}
			return nil, d.take(passed)
		})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.snapshot, d.pods
}

func (d *onDemand) fresh() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.snapshot != nil && time.Since(d.looked) < lookEvery
}

// take reads the caches, and counts only if they have changed and no pass has counted
// the same already.
func (d *onDemand) take(passed *count.Snapshot) error {
	if len(d.missing()) > 0 {
		return errIncomplete
	}
	now := time.Now()
	world, err := d.caches.World()
	if err != nil {
		return err
	}
	d.mu.Lock()
	snapshot := d.snapshot
	d.mu.Unlock()
	switch {
	case isOf(snapshot, world):
	case isOf(passed, world):
		snapshot = passed
	default:
		snapshot = count.Take(world)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looked = now
	if snapshot != d.snapshot {
		d.snapshot, d.pods = snapshot, world.Pods
		d.history.Add(now, snapshot)
	}
	return nil
}

// isOf reports whether a snapshot was counted from this very world.
func isOf(snapshot *count.Snapshot, world count.World) bool {
	if snapshot == nil || snapshot.Observed != world.Observed || (snapshot.DRA == nil) != (world.DRA == nil) {
		return false
	}
	return world.DRA == nil || snapshot.DRA.State == world.DRA.State && snapshot.DRA.Reason == world.DRA.Reason
}

// reading is what the API and the page are answered from.
func (s *surfaces) reading(context.Context) api.View {
	passed := s.view()
	v := api.View{History: &s.history}
	v.Snapshot, v.Pods = s.demand.look(passed.Snapshot)
	if v.Snapshot == nil {
		v.Missing = s.demand.missing()
		return v
	}
	v.Stale = s.stale(v.Snapshot, passed.Watches)
	return v
}

// stale is what is wrong with the watches that the snapshot depends on.
func (s *surfaces) stale(snap *count.Snapshot, heard map[string]time.Time) *api.Stale {
	relevant := []string{"pods"}
	if snap.NodesKnown {
		relevant = append(relevant, "nodes")
	}
	if snap.DRA != nil && snap.DRA.State == count.DRASynced {
		relevant = append(relevant, "deviceclasses", "resourceclaims", "resourceslices")
	}
	return staleness(time.Now(), relevant, heard, s.trouble.failing())
}

// remember keeps the history going on a replica that takes no passes, until ctx ends.
func (s *surfaces) remember(ctx context.Context) {
	tick := time.NewTicker(standbyEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if !s.leading() {
				s.demand.look(nil)
			}
		case <-ctx.Done():
			return
		}
	}
}

// handlers are the page and the API.
func (s *surfaces) handlers(o *Options) (map[string]http.Handler, page.Layout) {
	layout := page.Layout{Stale: func() *api.Stale { return s.reading(context.Background()).Stale }}
	if o.httpAuth() == authKubernetes {
		layout.Session = serve.SessionCookie
	}
	handlers := page.Handlers(layout, s.reading)
	maps.Copy(handlers, api.Handlers(s.reading))
	return handlers, layout
}

// attach says what the page and the API are answered from.
func (s *surfaces) attach(c caches) { s.demand = &onDemand{caches: c, history: &s.history} }

const (
	// silentAfter is how long a watch may be silent: the API server sends something
	// about every minute. The alert GPUSummaryWatchSilent has the same bound.
	silentAfter = 150 * time.Second
	// failingAfter is how long a watch may fail. An API server that is restarted
	// behind others fails for less.
	failingAfter = 10 * time.Second
)

// staleness judges watches by when they were last heard of, and by whether they fail.
func staleness(now time.Time, resources []string, heard map[string]time.Time, failing map[string]failure) *api.Stale {
	var since time.Time
	var whys []string
	blamed := make(map[string][]string) // why → resources
	for _, resource := range resources {
		last, ok := heard[resource]
		fails, failed := failing[resource]
		if failed && (!ok || last.After(fails.since)) {
			last = fails.since // what came since is a list at most
		}
		why := ""
		switch {
		case failed && now.Sub(fails.since) >= failingAfter:
			why = fails.why
		case (ok || failed) && now.Sub(last) > silentAfter:
			why = "nothing is heard"
		default:
			continue
		}
		if since.IsZero() || last.Before(since) {
			since = last
		}
		if blamed[why] == nil {
			whys = append(whys, why)
		}
		blamed[why] = append(blamed[why], resource)
	}
	if len(whys) == 0 {
		return nil
	}
	stale := &api.Stale{Since: since.UTC().Truncate(time.Second)}
	for _, why := range whys {
		stale.Reasons = append(stale.Reasons, fmt.Sprintf("watch of %s: %s", strings.Join(blamed[why], ", "), why))
	}
	return stale
}
