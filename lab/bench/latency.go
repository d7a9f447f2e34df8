package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/rival"
	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
)

// Metrics of the scenario latency.
const (
	p50Seconds = "p50_seconds"
	p99Seconds = "p99_seconds"
	samples    = "samples"
)

// loads are how many pods change each second; one change in gpuShare is of a GPU pod.
var loads = []float64{0, 20, 100, 1000}

func loadName(perSecond float64) string {
	if perSecond == 0 {
		return "quiet"
	}
	return fmt.Sprintf("%g/s", perSecond)
}

// latency measures the way from an event of a GPU pod to a watcher of the ConfigMap.
func latency(ctx context.Context, r *runner, name string) error {
	size := r.Sizes[0]
	var steps []step
	for _, perSecond := range loads {
		if r.Quick && perSecond == 20 {
			continue // too few GPU events in so short a time
		}
		for _, w := range []who{controller, bareUpdate, textbook} {
			measure := r.eventLatency
			if w == bareUpdate {
				measure = r.updateLatency
			}
			steps = append(steps, step{
				key{Scenario: name, Size: size.String(), Case: loadName(perSecond), Who: w, pods: size.Pods},
				func(ctx context.Context) (metrics, error) { return measure(ctx, w, size, perSecond) },
			})
		}
	}
	return r.take(ctx, name+" at "+size.String(), steps)
}

// changes is what happens while latency is measured: when quiet one GPU pod is bound at a
// time, and under load one change in gpuShare is that.
func (r *runner) changes(perSecond float64) server.Churn {
	if perSecond == 0 {
		return server.Churn{Count: pick(r, 20, 4), PerSecond: 1 / apart.Seconds(), GPUEvery: 1}
	}
	return server.Churn{Count: int(perSecond * pick(r, 15.0, 3)), PerSecond: perSecond, GPUEvery: gpuShare}
}

func (r *runner) eventLatency(ctx context.Context, w who, size Size, perSecond float64) (metrics, error) {
	p, err := r.settled(ctx, w, size.cluster())
	if err != nil {
		return nil, err
	}
	defer p.stop()
	seen, err := p.server.watch(ctx, summaryName)
	if err != nil {
		return nil, err
	}
	defer seen.stop()
	events, err := p.server.churn(ctx, r.changes(perSecond))
	if err != nil {
		return nil, err
	}
	last := events[len(events)-1].Requested
	if err := seen.until(ctx, func(s sighting) bool { return s.requested >= last }); err != nil {
		return nil, fmt.Errorf("the last change was not published: %w", err)
	}
	return spread(seen.since(events)), nil
}

func (r *runner) updateLatency(ctx context.Context, w who, size Size, perSecond float64) (metrics, error) {
	t, err := r.serve(ctx, size.cluster(), r.mode())
	if err != nil {
		return nil, err
	}
	defer t.stop()
	seen, err := t.watch(ctx, "bare-update")
	if err != nil {
		return nil, err
	}
	defer seen.stop()
	changes := r.changes(perSecond)
	count, every := changes.Count, apart
	if perSecond > 0 {
		every = 200 * time.Millisecond
		count = int(float64(changes.Count) / perSecond / every.Seconds())
	}
	e, err := r.enter(ctx, w, t, "--rows", strconv.Itoa(size.cluster().GPUNodes), "--count", strconv.Itoa(count), "--every", every.String())
	if err != nil {
		return nil, err
	}
	defer e.stop()
	if _, err := e.ready(ctx, startTimeout); err != nil {
		return nil, err
	}
	if perSecond > 0 {
		if _, err := t.churn(ctx, changes); err != nil {
			return nil, err
		}
	}
	if _, err := e.hear(ctx, "done", time.Minute); err != nil {
		return nil, err
	}
	var took []float64
	err = seen.until(ctx, func(s sighting) bool {
		if !s.sent.IsZero() {
			took = append(took, s.at.Sub(s.sent).Seconds())
		}
		return len(took) == count
	})
	return spread(took), err
}

func spread(values []float64) metrics {
	slices.Sort(values)
	at := func(q float64) float64 {
		if len(values) == 0 {
			return math.NaN()
		}
		return values[min(len(values)-1, int(q*float64(len(values))))]
	}
	return metrics{p50Seconds: at(0.5), p99Seconds: at(0.99), samples: float64(len(values))}
}

// sighting is a ConfigMap that a watcher has seen.
type sighting struct {
	at, sent  time.Time
	requested int64
}

// sightings are what a watcher of one ConfigMap sees.
type sightings struct {
	stop func()

	mu    sync.Mutex
	all   []sighting
	moved chan struct{}
}

// watch watches a ConfigMap from now on.
func (t *target) watch(ctx context.Context, name string) (*sightings, error) {
	client, err := kubernetes.NewForConfig(t.harness())
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	w, err := client.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return nil, fmt.Errorf("watch ConfigMap: %w", err)
	}
	s := &sightings{moved: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		for event := range w.ResultChan() {
			if cm, ok := event.Object.(*corev1.ConfigMap); ok {
				s.see(cm, time.Now())
			}
		}
	})
	s.stop = func() {
		w.Stop()
		wg.Wait()
	}
	return s, nil
}

func (s *sightings) see(cm *corev1.ConfigMap, at time.Time) {
	seen := sighting{at: at}
	if sent, err := strconv.ParseInt(cm.Annotations[rival.AnnotationSent], 10, 64); err == nil {
		seen.sent = time.Unix(0, sent)
	}
	var err error
	if seen.requested, err = strconv.ParseInt(cm.Annotations["gpu-summary/requested"], 10, 64); err != nil {
		for _, row := range cm.Data {
			n, _ := strconv.ParseInt(row, 10, 64)
			seen.requested += n
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, seen)
	close(s.moved)
	s.moved = make(chan struct{})
}

// sightingTimeout is how long a write may take to be seen.
const sightingTimeout = 30 * time.Second

// until shows each sighting to enough, until it says that that is enough.
func (s *sightings) until(ctx context.Context, enough func(sighting) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sightingTimeout, fmt.Errorf("not seen within %v", sightingTimeout))
	defer cancel()
	for next := 0; ; {
		s.mu.Lock()
		fresh, moved := s.all[next:], s.moved
		s.mu.Unlock()
		next += len(fresh)
		for _, one := range fresh {
			if enough(one) {
				return nil
			}
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// since returns how long after each event the first summary was seen that has it. The events only
// ever add.
func (s *sightings) since(events []server.GPUEvent) (took []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := 0
	for _, event := range events {
		// What was there before the event cannot have it.
		for i < len(s.all) && (s.all[i].requested < event.Requested || s.all[i].at.Before(event.At)) {
			i++
		}
		if i < len(s.all) {
			took = append(took, s.all[i].at.Sub(event.At).Seconds())
		}
	}
	return took
}
