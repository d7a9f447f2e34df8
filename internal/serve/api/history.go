package api

import (
	"slices"
	"sync"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

const (
	// finest is how many seconds one point stands for to begin with.
	finest = 10
	// maxPoints is how many a resource has at most; maxSeries how many resources are
	// remembered. All together that is less than a megabyte.
	maxPoints = 512
	maxSeries = 32
)

// Point is what the totals of a resource were from a moment on.
type Point struct {
	At        time.Time `json:"at"`
	Requested int64     `json:"requested"`
	// Free is what could be had: usable free.
	Free    int64 `json:"free"`
	Pending int64 `json:"pending"`
}

func (p Point) same(q Point) bool {
	return p.Requested == q.Requested && p.Free == q.Free && p.Pending == q.Pending
}

// History remembers the totals, a point for each change, and of the changes within ten
// seconds the last. When there are too many points, every two become one, and from
// then on a point stands for twice the time. The zero value is empty and ready.
type History struct {
	mu     sync.Mutex
	series map[string]*series
}

type series struct {
	points []Point
	span   int64 // seconds that a point stands for
}

// Add notes what a snapshot says. Times must not go back.
func (h *History) Add(at time.Time, snap *count.Snapshot) {
	at = at.UTC().Truncate(time.Second)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.series == nil {
		h.series = make(map[string]*series)
	}
	seen := make(map[string]bool, len(snap.Summaries))
	for i := range snap.Summaries {
		sum := &snap.Summaries[i]
		seen[sum.Resource] = true
		s := h.series[sum.Resource]
		if s == nil {
			if len(h.series) >= maxSeries {
				continue
			}
			s = &series{span: finest}
			h.series[sum.Resource] = s
		}
		s.add(Point{At: at, Requested: sum.Requested, Free: sum.UsableFree, Pending: sum.Pending.Devices})
	}
	for resource, s := range h.series {
		if !seen[resource] {
			s.add(Point{At: at}) // there is none of it any more
		}
	}
}

// Of returns the points of a resource, oldest first. The last one holds until now.
func (h *History) Of(resource string) []Point {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.series[resource]; s != nil {
		return slices.Clone(s.points)
	}
	return nil
}

func (s *series) add(p Point) {
	n := len(s.points)
	switch {
	case n > 0 && s.points[n-1].same(p):
		return
	case n > 1 && s.slot(s.points[n-1]) == s.slot(p): // the first point is where it all began
		s.points[n-1] = p
		return
	}
	s.points = append(s.points, p)
	for len(s.points) > maxPoints {
		s.span *= 2
		s.thin()
	}
}

// slot numbers the stretches of time of which one point remains.
func (s *series) slot(p Point) int64 { return p.At.Unix() / s.span }

// thin keeps the last point of each slot, and the very first.
func (s *series) thin() {
	kept := s.points[:1]
	for _, p := range s.points[1:] {
		if n := len(kept); n > 1 && s.slot(kept[n-1]) == s.slot(p) {
			kept[n-1] = p
		} else {
			kept = append(kept, p)
		}
	}
	s.points = kept
}

type historyDocument struct {
	envelope
	Resource string  `json:"resource"`
	Points   []Point `json:"points"`
}

func history(v View, p *Parameters) any {
	resource := p.Text("resource")
	if resource == "" {
		resource = count.NVIDIA
	}
	points := v.History.Of(resource)
	lists(&points)
	return historyDocument{v.envelope(), resource, points}
}
