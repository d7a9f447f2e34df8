package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/queue"
	"github.com/gpu-summary/gpu-summary-controller/internal/reconcile"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve/api"
	"github.com/gpu-summary/gpu-summary-controller/internal/version"
	"github.com/gpu-summary/gpu-summary-controller/internal/watch"
)

// surfaces is what readers see besides the ConfigMaps: the same snapshot, and how
// this process is.
type surfaces struct {
	recorder *serve.Recorder
	pulse    *watch.Pulse
	trouble  *trouble
	pass     *serve.Progress
	leading  func() bool
	demand   *onDemand
	history  api.History

	mu       sync.Mutex
	snapshot *count.Snapshot
	taken    time.Time
}

func newSurfaces() *surfaces {
	return &surfaces{
		recorder: serve.NewRecorder(), pulse: watch.NewPulse(), trouble: newTrouble(),
		pass:    serve.NewProgress("a pass has been running", serve.StuckAfter),
		leading: func() bool { return false },
	}
}

// took keeps a snapshot for everyone to see.
func (s *surfaces) took(snap *count.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot, s.taken = snap, time.Now()
	s.history.Add(s.taken, snap)
}

func (s *surfaces) view() serve.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return serve.View{Snapshot: s.snapshot, Taken: s.taken, Leading: s.leading(), Watches: s.pulse.Last()}
}

func (s *surfaces) metrics(o *Options) []prometheus.Collector {
	return []prometheus.Collector{
		serve.NewCollector(serve.CollectorOptions{Version: version.String(), OmitNodes: !o.MetricsPerNode}, s.view), s.recorder,
	}
}

// shown publishes, and shows what came of it.
func (s *surfaces) shown(p *publish.Publisher) func(context.Context, *count.Snapshot) (publish.Result, error) {
	return func(ctx context.Context, snap *count.Snapshot) (publish.Result, error) {
		s.took(snap)
		result, err := p.Publish(ctx, snap)
		s.recorder.Published(result, err)
		return result, err
	}
}

// timed notices a pass that does not end.
func (s *surfaces) timed(f reconcile.Func) reconcile.Func {
	return func(ctx context.Context, key queue.Key) (bool, error) {
		s.pass.Begin()
		defer s.pass.End()
		return f(ctx, key)
	}
}

// untilFenced ends the work of a leader whose term is over, whatever its lease
// says. Trying again would meet the same.
func untilFenced(f reconcile.Func, end func(error)) reconcile.Func {
	return func(ctx context.Context, key queue.Key) (bool, error) {
		wrote, err := f(ctx, key)
		if errors.Is(err, publish.ErrFenced) {
			end(err)
		}
		return wrote, err
	}
}
