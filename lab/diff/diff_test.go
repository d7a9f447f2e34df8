package diff

import (
	"context"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const seed = 1

func run(t *testing.T, o Options) *Report {
	t.Helper()
	if o.Workers == 0 {
		o.Workers = 2
	}
	o.Seed = seed
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestTheSchedulerAgrees is the short form of lab diff --pods 1000000.
func TestTheSchedulerAgrees(t *testing.T) {
	report := run(t, Options{Pods: 10_000})
	if report.Pods != 10_000 || report.Mismatches != 0 || report.Numbers < 1000 || report.Charged < 1000 {
		var out strings.Builder
		_ = report.Write(&out, Table)
		t.Error(out.String())
	}
}

// TestEveryFeatureOccurs: what is not generated is not judged.
func TestEveryFeatureOccurs(t *testing.T) {
	for _, f := range run(t, Options{Pods: 10_000}).Features {
		if f.Pods < 20 || f.Pods > 9980 {
			t.Errorf("seed %d: %d of 10,000 pods have %q", seed, f.Pods, f.Name)
		}
	}
	seen := map[corev1.ResourceName]int{}
	for n := range 10_000 {
		for _, list := range requests(Pod(seed, n)) {
			for name := range list {
				seen[name]++
			}
		}
	}
	for _, name := range slices.Concat(gpus, lookAlikes, others) {
		if seen[name] < 20 {
			t.Errorf("seed %d: %s is asked for %d times", seed, name, seen[name])
		}
	}
}

// TestAPodIsMadeFromItsSubSeedAlone: a failure names one pod, which must be the
// same when it is made again.
func TestAPodIsMadeFromItsSubSeedAlone(t *testing.T) {
	pods := cluster(seed, 640, together)
	for _, n := range []int{703, 640, 671} {
		if diff := cmp.Diff(pods[n-640], Pod(seed, n)); diff != "" {
			t.Errorf("pod %d of its cluster and made alone:\n%s", n, diff)
		}
	}
	if cmp.Equal(Pod(seed, 1).Spec, Pod(seed, 2).Spec) || cmp.Equal(Pod(seed, 1).Spec, Pod(seed+1, 1).Spec) {
		t.Error("another number or another seed makes the same pod")
	}
}

// TestWorkersMakeNoDifference, down to what is found and how it is shrunk.
func TestWorkersMakeNoDifference(t *testing.T) {
	var reports []*Report
	for _, workers := range []int{1, 2, 5} {
		r := run(t, Options{Pods: 2_000, Workers: workers, Counter: planted["R1 the phase is not looked at"]})
		r.Workers, r.Seconds, r.PodsPerSecond = 0, 0, 0
		reports = append(reports, r)
	}
	for _, r := range reports[1:] {
		if diff := cmp.Diff(reports[0], r); diff != "" {
			t.Errorf("another number of workers, another report:\n%s", diff)
		}
	}
}

// TestSumsStayWithin64Bits: what NodeInfo does beyond is not what we do, and pods
// that go there must not be judged together.
func TestSumsStayWithin64Bits(t *testing.T) {
	for first := 0; first < 10_000; first += together {
		sums := map[Key]*big.Int{}
		for _, pod := range cluster(seed, first, together) {
			info := framework.NewNodeInfo(pod)
			for name, n := range info.Requested.ScalarResources {
				node := pod.Spec.NodeName
				if strings.HasPrefix(node, gonePrefix) {
					node = ""
				}
				key := Key{node, string(name)}
				if sums[key] == nil {
					sums[key] = new(big.Int)
				}
				abs := new(big.Int).Abs(big.NewInt(n))
				if pod.Spec.NodeName == "" || !reachesScheduler(pod) {
					abs.SetInt64(0)
				}
				sums[key].Add(sums[key], abs)
			}
		}
		for key, sum := range sums {
			if !strings.HasPrefix(key.Node, alonePrefix) && !sum.IsInt64() {
				t.Fatalf("seed %d, pods from %d: %s on %q comes to %s", seed, first, key.Resource, key.Node, sum)
			}
		}
	}
}

// TestSaturation holds the one difference there is (R11): the scheduler's sum of
// two pods wraps, ours does not.
func TestSaturation(t *testing.T) {
	pod := func(amounts ...string) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-0"}}
		for _, amount := range amounts {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{gpus[0]: resource.MustParse(amount)},
			}})
		}
		return p
	}
	const most = "9223372036854775807"
	for _, tc := range []struct {
		name      string
		pods      []*corev1.Pod
		scheduler int64
		ours      int64
	}{
		{"two pods", []*corev1.Pod{pod(most), pod(most)}, -2, math.MaxInt64},
		{"three pods below zero", []*corev1.Pod{pod("-4e18"), pod("-4e18"), pod("-4e18")}, 6446744073709551616, math.MinInt64},
		{"two containers", []*corev1.Pod{pod(most, "1")}, math.MinInt64, math.MaxInt64},
		{"one pod with the most there is", []*corev1.Pod{pod(most)}, math.MaxInt64, math.MaxInt64},
	} {
		key := Key{"node-0", string(gpus[0])}
		nodes := nodesOf(tc.pods)
		if scheduler, ours := Scheduler(nodes, tc.pods)[key], Ours(nodes, tc.pods)[key]; scheduler != tc.scheduler || ours != tc.ours {
			t.Errorf("%s: the scheduler says %d, we say %d; want %d and %d", tc.name, scheduler, ours, tc.scheduler, tc.ours)
		}
	}
}

func TestARunThatIsGivenUpSaysHowFarItCame(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	counter := func(nodes []*corev1.Node, pods []*corev1.Pod) Counts {
		cancel()
		return Ours(nodes, pods)
	}
	report, err := Run(ctx, Options{Pods: 1_000_000, Workers: 1, Counter: counter})
	if !errors.Is(err, context.Canceled) || report == nil || report.Pods != together {
		t.Errorf("%v, %+v; want it cancelled after %d pods", err, report, together)
	}
}

func TestOptions(t *testing.T) {
	for flag, o := range map[string]Options{"--pods": {Workers: 1}, "--workers": {Pods: 1}} {
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%+v: %v; want %s refused", o, err, flag)
		}
	}
}
