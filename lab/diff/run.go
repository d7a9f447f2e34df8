package diff

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/progress"
)

const (
	// together is how many pods are counted at once, so that nodes have several.
	together = 64
	// maxFindings is how many clusters with a mismatch are shrunk and shown. One
	// mistake shows in thousands of them.
	maxFindings = 3
)

// Options say what to compare.
type Options struct {
	Pods    int
	Seed    uint64
	Workers int
	// Counter is who is judged, Ours when nil.
	Counter Counter
	// Progress gets a bar or lines; nil is silent.
	Progress io.Writer
}

// Check reports what is wrong with the options.
func (o Options) Check() error {
	switch {
	case o.Pods < 1:
		return errors.New("--pods has to be at least 1")
	case o.Workers < 1:
		return errors.New("--workers has to be at least 1")
	}
	return nil
}

// Run makes pods, lets both sides count them and says where they differ. The
// result, but for the time it took, depends on pods and seed alone.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Counter == nil {
		o.Counter = Ours
	}
	start := time.Now()
	sum := work(ctx, o)
	report := sum.report(o, time.Since(start))
	if err := context.Cause(ctx); err != nil {
		return report, err
	}
	slices.Sort(sum.differ)
	for _, first := range sum.differ[:min(len(sum.differ), maxFindings)] {
		report.Found = append(report.Found, find(o, first))
	}
	return report, nil
}

// tally is what one worker, or all of them, have seen.
type tally struct {
	pods, charged, numbers, mismatches int

	features []int
	// differ has the first pod of clusters with a mismatch: of each worker the
	// lowest maxFindings, so of all together, too.
	differ []int
}

// work shares the pods among the workers, a cluster at a time.
func work(ctx context.Context, o Options) *tally {
	bar := progress.New(o.Progress, o.Pods, "pods")
	defer bar.Done()
	tallies := make([]tally, o.Workers)
	var next atomic.Int64
	var wg sync.WaitGroup
	for i := range tallies {
		wg.Go(func() {
			t := &tallies[i]
			t.features = make([]int, len(features))
			for ctx.Err() == nil {
				first := int(next.Add(together)) - together
				if first >= o.Pods {
					return
				}
				n := min(together, o.Pods-first)
				t.cluster(o, first, n)
				bar.Add(n)
			}
		})
	}
	wg.Wait()
	all := &tally{features: make([]int, len(features))}
	for i := range tallies {
		all.include(&tallies[i])
	}
	return all
}

func (t *tally) cluster(o Options, first, n int) {
	pods := cluster(o.Seed, first, n)
	for _, pod := range pods {
		for i := range features {
			if features[i].has(pod) {
				t.features[i]++
			}
		}
		if reachesScheduler(pod) && namesIn(pod, gpus) > 0 {
			t.charged++
		}
	}
	numbers, mismatches := compare(pods, o.Counter)
	t.pods += n
	t.numbers += numbers
	t.mismatches += len(mismatches)
	if len(mismatches) > 0 && len(t.differ) < maxFindings {
		t.differ = append(t.differ, first)
	}
}

func (t *tally) include(other *tally) {
	t.pods += other.pods
	t.charged += other.charged
	t.numbers += other.numbers
	t.mismatches += other.mismatches
	t.differ = append(t.differ, other.differ...)
	for i, n := range other.features {
		t.features[i] += n
	}
}

// cluster makes the pods that are counted together.
func cluster(seed uint64, first, n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = Pod(seed, first+i)
	}
	return pods
}
