package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/pipeline"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// healthy is a leader that has been at work for a while.
func healthy() pipeline.Numbers {
	n := pipeline.Numbers{At: now, Resources: []string{"pods", "nodes", "configmaps", "deviceclasses", "resourceslices", "resourceclaims"}}
	for _, resource := range n.Resources[:3] {
		n.Reflector = append(n.Reflector, pipeline.Reflector{
			Resource: resource, Synced: true, Connected: ago(5 * time.Minute), LastByte: ago(20 * time.Second),
			Lists: 2, LastList: ago(time.Hour), Expired: 1, LastExpired: ago(time.Hour), Bookmarks: 60,
			Ends: map[string]int64{"closed": 11, "broken": 1, "expired": 1, "refused": 0},
		})
		n.FIFO = append(n.FIFO, pipeline.FIFO{Resource: resource, Handled: 1000, HandledSeconds: 0.02})
		n.Indexer = append(n.Indexer, pipeline.Indexer{
			Resource: resource, Objects: 1523, Bytes: 500_000, Seen: 1_234_567, Decoded: 40_000, Dropped: 1_200_000,
			Measured: resource != "configmaps", SeenBytes: 6 << 30, DroppedBytes: 5 << 30,
			Version: "4711", Position: "4799", HandedOn: ago(time.Hour),
		})
	}
	n.Workqueue = pipeline.Workqueue{Asked: 5000, Retries: 2, HandedOut: 250, SettleSeconds: 1}
	n.Reconciler = pipeline.Reconciler{
		Last: ago(10 * time.Second), Seconds: 0.0123, Outcome: pipeline.Written, Reasons: []string{"counts changed"},
		Changes: []string{"gpu-summary updated: node-a 2→4"}, Right: ago(10 * time.Second),
		Publishes: map[string]int64{"written": 200, "unchanged": 49, "failed": 1}, Writes: map[string]int64{"changed": 210}, FailedBy: map[string]int64{"conflict": 1},
	}
	n.Lease = pipeline.Lease{
		Elected: true, Name: "gpu-summary/gpu-summary-controller", Identity: "host_A", Holder: "host_A", Leading: true, Term: 7,
		Renewed: ago(2 * time.Second), RenewDeadlineSeconds: 10,
	}
	return n
}

// standby is one that waits for its turn, with a key that nobody takes.
func standby(n *pipeline.Numbers) {
	n.Lease = pipeline.Lease{Elected: true, Identity: "host_A", Holder: "host_B", RenewDeadlineSeconds: 10}
	n.Workqueue = pipeline.Workqueue{Depth: 1, Oldest: ago(time.Hour), Asked: 100}
	n.Reconciler = pipeline.Reconciler{}
}

// TestOneCanSeeWhereTheTroubleIs: for each trouble it is that component which is in it,
// and no other, and the reason says what it is.
func TestOneCanSeeWhereTheTroubleIs(t *testing.T) {
	for _, tc := range []struct {
		name, component, reason string
		change                  func(*pipeline.Numbers)
	}{
		{"a watch is silent", pipeline.ReflectorName, "nothing has been heard on the watch of nodes for 3m 0s",
			func(n *pipeline.Numbers) { n.Reflector[1].LastByte = ago(3 * time.Minute) }},
		{"a watch is silent behind one that is opened again", pipeline.ReflectorName, "nothing has been heard on the watch of nodes for 3m 0s",
			func(n *pipeline.Numbers) {
				n.Reflector[0].Connected, n.Reflector[1].LastByte = time.Time{}, ago(3*time.Minute)
			}},
		{"a watch is refused", pipeline.ReflectorName, "watch pods: forbidden",
			func(n *pipeline.Numbers) {
				n.Reflector[0].Failure, n.Reflector[0].Connected = "watch pods: forbidden", time.Time{}
			}},
		{"the first list is refused", pipeline.ReflectorName, "list pods: forbidden",
			func(n *pipeline.Numbers) {
				n.Reflector[0] = pipeline.Reflector{Resource: "pods", Failure: "list pods: forbidden"}
			}},
		{"an object cannot be decoded", pipeline.ReflectorName, "the newest version of 1 object among pods cannot be decoded",
			func(n *pipeline.Numbers) { n.Reflector[0].Missing = 1 }},
		{"events pile up", pipeline.FIFOName, "20000 events of pods wait for the store",
			func(n *pipeline.Numbers) { n.FIFO[0].Queued = 20000 }},
		{"a store lags", pipeline.IndexerName, "the store of pods has lacked what was handed on for 15s",
			func(n *pipeline.Numbers) { n.Indexer[0].Behind, n.Indexer[0].HandedOn = true, ago(15*time.Second) }},
		{"nobody takes the key", pipeline.WorkqueueName, "a key has waited for 45s and nobody takes it",
			func(n *pipeline.Numbers) { n.Workqueue.Depth, n.Workqueue.Oldest = 1, ago(45*time.Second) }},
		{"publishing fails", pipeline.ReconcilerName, "3 passes have failed in a row: update ConfigMap: forbidden",
			func(n *pipeline.Numbers) {
				n.Reconciler.Failures, n.Reconciler.Outcome, n.Reconciler.Error = 3, pipeline.Failed, "update ConfigMap: forbidden"
				n.Workqueue.Retries = 3
			}},
		// The key behind it waits too, and that is not what is wrong.
		{"a pass hangs", pipeline.ReconcilerName, "a pass has been running for 4m 0s",
			func(n *pipeline.Numbers) {
				n.Reconciler.Running = ago(4 * time.Minute)
				n.Workqueue.Depth, n.Workqueue.Oldest = 1, ago(4*time.Minute)
			}},
		{"the lease is lost", pipeline.LeaseName, "lost the lease",
			func(n *pipeline.Numbers) { n.Lease.Leading, n.Lease.Lost = false, "lost the lease" }},
		{"the lease is not renewed", pipeline.LeaseName, "the lease was renewed 6s ago, and is lost after 10s",
			func(n *pipeline.Numbers) { n.Lease.Renewed = ago(6 * time.Second) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := healthy()
			tc.change(&n)
			for _, v := range pipeline.Judge(n) {
				if trouble := v.State == pipeline.Trouble; trouble != (v.Component == tc.component) {
					t.Errorf("%s is %s: %s", v.Component, v.State, v.Reason)
				} else if trouble && v.Reason != tc.reason {
					t.Errorf("%s: %q, want %q", v.Component, v.Reason, tc.reason)
				}
				if v.Rule == "" || v.Reason == "" {
					t.Errorf("%s: rule %q, reason %q", v.Component, v.Rule, v.Reason)
				}
			}
		})
	}
}

// TestWhatIsBusy passes by itself, and all else is well.
func TestWhatIsBusy(t *testing.T) {
	for _, tc := range []struct {
		name   string
		busy   string // components
		change func(*pipeline.Numbers)
	}{
		{"nothing", "", func(*pipeline.Numbers) {}},
		{"the first list", "reflector indexer", func(n *pipeline.Numbers) { n.Reflector[0].Synced, n.FIFO[0].Queued = false, 0 }},
		{"a large first list", "reflector fifo indexer", func(n *pipeline.Numbers) { n.Reflector[0].Synced, n.FIFO[0].Queued = false, 200_000 }},
		{"a watch is opened again", "reflector", func(n *pipeline.Numbers) { n.Reflector[0].Connected = time.Time{} }},
		{"410", "reflector", func(n *pipeline.Numbers) { n.Reflector[0].LastExpired = ago(30 * time.Second) }},
		{"a burst", "fifo indexer workqueue reconciler", func(n *pipeline.Numbers) {
			n.FIFO[0].Queued, n.Indexer[0].Behind, n.Indexer[0].HandedOn = 500, true, now
			n.Workqueue.Depth, n.Workqueue.Oldest, n.Reconciler.Running = 1, ago(time.Second), ago(time.Second)
		}},
		{"one conflict", "workqueue reconciler", func(n *pipeline.Numbers) { n.Reconciler.Failures, n.Reconciler.Error = 1, "conflict" }},
		{"before the first pass", "reconciler", func(n *pipeline.Numbers) { n.Reconciler = pipeline.Reconciler{} }},
		{"a long rest", "workqueue", func(n *pipeline.Numbers) {
			n.Workqueue.Depth, n.Workqueue.Oldest, n.Workqueue.SettleSeconds = 1, ago(4*time.Minute), 300
		}},
		{"a standby", "", standby},
		{"a standby that knows of no leader", "lease", func(n *pipeline.Numbers) { standby(n); n.Lease.Holder = "" }},
		{"about to lead", "lease", func(n *pipeline.Numbers) { standby(n); n.Lease.Holder = "host_A" }},
		{"no election", "", func(n *pipeline.Numbers) { n.Lease = pipeline.Lease{Leading: true} }},
		// A watch on which nothing has come yet is not silent.
		{"at the very start", "reflector indexer reconciler", func(n *pipeline.Numbers) {
			n.Reflector[0] = pipeline.Reflector{Resource: "pods"}
			n.Reconciler = pipeline.Reconciler{}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := healthy()
			tc.change(&n)
			var busy []string
			for _, v := range pipeline.Judge(n) {
				switch v.State {
				case pipeline.Busy:
					busy = append(busy, v.Component)
				case pipeline.Trouble:
					t.Errorf("%s is in trouble: %s", v.Component, v.Reason)
				}
			}
			if got := strings.Join(busy, " "); got != tc.busy {
				t.Errorf("busy: %q, want %q", got, tc.busy)
			}
		})
	}
}

// TestTheRulesAreDocumented: the document has a row for each component, with the bounds
// by which it is judged.
func TestTheRulesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "pipeline.md"))
	if err != nil {
		t.Fatal(err)
	}
	for component, bounds := range map[string][]string{
		pipeline.ReflectorName: {"150 seconds", "last minute"}, pipeline.FIFOName: {"10,000", "100 wait"}, pipeline.IndexerName: {"10 seconds"},
		pipeline.WorkqueueName: {"30 seconds"}, pipeline.ReconcilerName: {"two passes", "a minute"}, pipeline.LeaseName: {"half of"},
	} {
		_, row, found := strings.Cut(strings.ToLower(string(text)), "\n| "+component+" |")
		row, _, _ = strings.Cut(row, "\n")
		for _, bound := range bounds {
			if !found || !strings.Contains(row, bound) {
				t.Errorf("docs/pipeline.md: the row of %s lacks %q: %s", component, bound, row)
			}
		}
	}
}
