package publish

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// diary is a history of passes, and what was told of it and when.
type diary struct {
	*testing.T
	*States
	start, now, next time.Time
	told             []entry
}

type entry struct {
	at time.Duration
	Event
}

func (e entry) String() string {
	return fmt.Sprint(e.at, " ", e.Regarding.Kind, "/", e.Regarding.Name, " ", e.Reason)
}

func newDiary(t *testing.T, delay time.Duration) *diary {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &diary{T: t, States: NewStates("ns", delay), start: start, now: start}
}

// until lets time pass as Run does: it asks when it is told to, and only then.
func (d *diary) until(at time.Duration) {
	d.Helper()
	for end := d.start.Add(at); d.next != never && !d.next.After(end); {
		d.now = d.next
		d.ask()
	}
	d.now = d.start.Add(at)
}

func (d *diary) ask() {
	d.Helper()
	events, next := d.Due(d.now)
	for _, e := range events {
		d.told = append(d.told, entry{d.now.Sub(d.start), e})
	}
	if d.next = next; next != never && !next.After(d.now) {
		d.Fatalf("asked at %v, it wants to be asked again at %v, and so for ever", d.now, next)
	}
}

func (d *diary) pass(at time.Duration, p Pass) {
	d.Helper()
	d.until(at)
	d.Observe(p, d.now)
	d.ask()
}

// counted is a snapshot of these nodes, each overcommitted, and of others.
func counted(over ...string) *count.Snapshot {
	snap := &count.Snapshot{NodesKnown: true}
	for _, node := range append([]string{"fine"}, over...) {
		row := count.Row{Node: node, Resource: count.NVIDIA, Source: count.DevicePlugin}
		row.Numbers = count.Numbers{Capacity: 8, Allocatable: 8, Requested: 6, Free: 2}
		if node != "fine" {
			row.Numbers = count.Numbers{Capacity: 8, Allocatable: 5, Requested: 6, Overcommitted: 1}
		}
		snap.Rows = append(snap.Rows, row)
	}
	return snap
}

func published(shards int) []Set {
	return []Set{{Name: "gpu-summary", UID: "1"}, {Name: "gpu-capacity", UID: "2", Shards: shards}}
}

type step struct {
	at     time.Duration
	over   string
	err    error
	shards int
	blind  bool // the caches could not be read
}

var errWrite = errors.New("no room")

// behind and errLater are as Publish returns them.
var (
	behind   = join([]error{errWrite, fmt.Errorf("ConfigMap: %w: here and there", ErrBehind)})
	errLong  = errors.New(strings.Repeat("é", 2000))
	errLater = fmt.Errorf("ConfigMap: %w: 3 there, 2 here", ErrFenced)
)

// TestWhatIsTold: states that last, once each, and the last one in any case. Delays
// are 30 s, a minute and 10 s; one reason has to wait 15 minutes.
func TestWhatIsTold(t *testing.T) {
	const s, m = time.Second, time.Minute
	const started = "0s ConfigMap/gpu-summary PublishingStarted"
	for name, tc := range map[string]struct {
		steps []step
		want  []string
	}{
		"nothing": {[]step{{at: 0}, {at: 10 * m}, {at: 20 * m}}, []string{started}},
		"overcommitted, without another pass": {
			[]step{{at: 0}, {at: 10 * s, over: "a"}},
			[]string{started, "40s Node/a GPUsOvercommitted"},
		},
		"for a moment": {[]step{{at: 0}, {at: 10 * s, over: "a"}, {at: 39 * s}}, []string{started}},
		"and right again": {
			[]step{{at: 0}, {at: 10 * s, over: "a"}, {at: 2 * m}},
			[]string{started, "40s Node/a GPUsOvercommitted", "2m30s Node/a GPUsRecovered"},
		},
		"right for a moment": {
			[]step{{at: 0}, {at: 10 * s, over: "a"}, {at: 2 * m}, {at: 2*m + 29*s, over: "a"}},
			[]string{started, "40s Node/a GPUsOvercommitted"},
		},
		"flapping is one episode": {
			[]step{{at: 0}, {at: 1 * s, over: "a"}, {at: 21 * s}, {at: 41 * s, over: "a"}, {at: 61 * s}, {at: 81 * s, over: "a"}, {at: 101 * s}},
			[]string{started, "41s Node/a GPUsOvercommitted", "2m11s Node/a GPUsRecovered"},
		},
		"two episodes are not one": {
			[]step{{at: 0}, {at: 1 * s, over: "a"}, {at: 21 * s}, {at: 51 * s, over: "a"}, {at: 71 * s}, {at: 101 * s, over: "a"}, {at: 121 * s}},
			[]string{started},
		},
		"again, late": {
			[]step{{at: 0}, {at: 0, over: "a"}, {at: 1 * m}, {at: 2 * m, over: "a"}},
			[]string{started, "30s Node/a GPUsOvercommitted", "1m30s Node/a GPUsRecovered", "15m30s Node/a GPUsOvercommitted"},
		},
		"again, and right before it is told": {
			[]step{{at: 0}, {at: 0, over: "a"}, {at: 1 * m}, {at: 2 * m, over: "a"}, {at: 14 * m}},
			[]string{started, "30s Node/a GPUsOvercommitted", "1m30s Node/a GPUsRecovered"},
		},
		"since before the start": {
			[]step{{at: 0, over: "a b"}, {at: 1 * m, over: "b"}, {at: 2 * m, over: "a b"}},
			[]string{started, "30s ConfigMap/gpu-summary NodesOvercommitted", "1m30s Node/a GPUsRecovered", "15m30s Node/a GPUsOvercommitted"},
		},
		"since before the start, for a moment": {
			[]step{{at: 0, over: "a"}, {at: 20 * s}, {at: 20 * m, over: "a"}},
			[]string{started, "20m30s Node/a GPUsOvercommitted"},
		},
		"seen while writes fail": {
			[]step{{at: 0}, {at: 10 * s, over: "a", err: errWrite}, {at: 20 * s, over: "a", blind: true, err: errWrite}, {at: 50 * s, over: "a"}},
			[]string{started, "40s Node/a GPUsOvercommitted"},
		},

		"failures that pass":   {[]step{{at: 0}, {at: 10 * s, err: errWrite}, {at: 69 * s}}, []string{started}},
		"a success in between": {[]step{{at: 0}, {at: 10 * s, err: errWrite}, {at: 60 * s}, {at: 70 * s, err: errWrite}, {at: 120 * s}}, []string{started}},
		"stale, and well again": {
			[]step{{at: 0}, {at: 10 * s, err: errWrite}, {at: 50 * s, err: errWrite}, {at: 3 * m}},
			[]string{started, "1m10s ConfigMap/gpu-summary PublishingStale", "3m0s ConfigMap/gpu-summary PublishingRecovered"},
		},
		"unreadable is stale too": {
			[]step{{at: 0}, {at: 10 * s, blind: true, err: errWrite}},
			[]string{started, "1m10s ConfigMap/gpu-summary PublishingStale"},
		},
		"from the start": {
			[]step{{at: 0, err: errWrite}, {at: 2 * m}, {at: 3 * m, err: errWrite}, {at: 20 * m}},
			[]string{
				"1m0s ConfigMap/gpu-summary PublishingStale", "2m0s ConfigMap/gpu-summary PublishingStarted",
				"16m0s ConfigMap/gpu-summary PublishingStale", "20m0s ConfigMap/gpu-summary PublishingRecovered",
			},
		},
		"stale often": {
			[]step{{at: 0}, {at: 0, err: errWrite}, {at: 2 * m}, {at: 3 * m, err: errWrite}, {at: 5 * m}, {at: 6 * m, err: errWrite}},
			[]string{
				started, "1m0s ConfigMap/gpu-summary PublishingStale", "2m0s ConfigMap/gpu-summary PublishingRecovered",
				"16m0s ConfigMap/gpu-summary PublishingStale",
			},
		},
		"behind for a moment": {[]step{{at: 0}, {at: 10 * s, err: behind}, {at: 19 * s}}, []string{started}},
		"behind for a moment, twice": {
			[]step{{at: 0}, {at: 10 * s, err: behind}, {at: 19 * s}, {at: 30 * s, err: behind}, {at: 39 * s}},
			[]string{started},
		},
		"fenced": {
			[]step{{at: 0}, {at: 10 * s, err: behind}, {at: 15 * s, err: behind}, {at: 5 * m, err: behind}, {at: 9 * m}},
			[]string{started, "20s ConfigMap/gpu-summary PublishingFenced", "9m0s ConfigMap/gpu-summary PublishingRecovered"},
		},
		"fenced, then something else": {
			[]step{{at: 0}, {at: 10 * s, err: behind}, {at: 30 * s, err: errWrite}},
			[]string{started, "20s ConfigMap/gpu-summary PublishingFenced", "1m10s ConfigMap/gpu-summary PublishingStale"},
		},
		"a later term": {
			[]step{{at: 0}, {at: 10 * s, err: errLater}, {at: 20 * s, err: behind}, {at: 30 * s}},
			[]string{started, "10s ConfigMap/gpu-summary PublishingFenced", "30s ConfigMap/gpu-summary PublishingRecovered"},
		},
		"behind, then a later term": {
			[]step{{at: 0}, {at: 10 * s, err: behind}, {at: 12 * s, err: join([]error{behind, errLater})}, {at: 40 * m}},
			[]string{started, "12s ConfigMap/gpu-summary PublishingFenced", "40m0s ConfigMap/gpu-summary PublishingRecovered"},
		},
		"something else, then behind": {
			[]step{{at: 0}, {at: 10 * s, err: errWrite}, {at: 65 * s, err: behind}},
			[]string{started, "1m10s ConfigMap/gpu-summary PublishingStale", "1m15s ConfigMap/gpu-summary PublishingFenced"},
		},

		"shards, and back": {
			[]step{{at: 0}, {at: 1 * m, shards: 2}, {at: 2 * m, shards: 4}, {at: 3 * m}},
			[]string{started, "1m0s ConfigMap/gpu-capacity ShardsNeeded", "3m0s ConfigMap/gpu-capacity ShardsNotNeeded"},
		},
		"shards since before the start": {
			[]step{{at: 0, shards: 4}, {at: 3 * m}},
			[]string{started, "3m0s ConfigMap/gpu-capacity ShardsNotNeeded"},
		},
		"shards half written": {[]step{{at: 0}, {at: 1 * m, shards: 2, err: errWrite}, {at: 2*m - s}}, []string{started}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDiary(t, DefaultEventDelay)
			for _, s := range tc.steps {
				p := Pass{Snapshot: counted(strings.Fields(s.over)...), Sets: published(s.shards), Err: s.err}
				if s.blind {
					p.Snapshot = nil
				}
				d.pass(s.at, p)
			}
			d.until(100 * m)
			var got []string
			for _, e := range d.told {
				got = append(got, e.String())
			}
			// What was last observed may still become stale or be told late.
			if !slices.Equal(got, tc.want) {
				t.Errorf("told was\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tc.want, "\n  "))
			}
		})
	}
}

// TestNotes: what a person reads, and who it is about.
func TestNotes(t *testing.T) {
	d := newDiary(t, time.Minute)
	d.pass(0, Pass{Snapshot: counted("old"), Sets: published(0)})
	d.pass(time.Second, Pass{Snapshot: counted("a", "old"), Sets: published(2)})
	d.pass(2*time.Minute, Pass{Snapshot: counted(), Sets: published(2), Err: errWrite})
	d.pass(4*time.Minute, Pass{Snapshot: counted("a"), Sets: published(2), Err: behind})
	d.pass(6*time.Minute, Pass{Snapshot: counted(), Sets: published(2)})
	d.pass(8*time.Minute, Pass{Snapshot: counted("a"), Sets: published(0)})
	d.until(time.Hour)
	want := []string{
		"Normal ConfigMap/ns/gpu-summary/1: Publish PublishingStarted: Publishing gpu-summary, gpu-capacity",
		"Normal ConfigMap/ns/gpu-capacity/2 and ConfigMap/ns/gpu-capacity-shard-0001/: Publish ShardsNeeded: The rows are too many for one ConfigMap and are in 2 shards: gpu-capacity-shard-0001 and following",
		"Warning ConfigMap/ns/gpu-summary/1: Count NodesOvercommitted: 1 node overcommitted without an Event of their own, for they were when publishing started: old",
		"Warning Node//a/a and ConfigMap/ns/gpu-summary/1: Count GPUsOvercommitted: Pods hold more GPUs than are healthy, for 1m0s: 6 of nvidia.com/gpu requested, 5 of 8 healthy",
		"Warning ConfigMap/ns/gpu-summary/1: Publish PublishingStale: Not all that is published is up to date, since 1m0s: no room",
		"Normal Node//a/a and ConfigMap/ns/gpu-summary/1: Count GPUsRecovered: Pods hold no more GPUs than are healthy: none are left, and none are counted here",
		"Normal Node//old/old and ConfigMap/ns/gpu-summary/1: Count GPUsRecovered: Pods hold no more GPUs than are healthy: none are left, and none are counted here",
		"Warning ConfigMap/ns/gpu-summary/1: Publish PublishingFenced: Not publishing, for what is published is newer: " + behind.Error(),
		"Normal ConfigMap/ns/gpu-summary/1: Publish PublishingRecovered: Publishing again, after 4m0s of: " + behind.Error(),
		"Normal ConfigMap/ns/gpu-capacity/2: Publish ShardsNotNeeded: The rows fit into this ConfigMap again, those with \"-shard-\" in their names are removed",
		"Warning Node//a/a and ConfigMap/ns/gpu-summary/1: Count GPUsOvercommitted: Pods hold more GPUs than are healthy, for 8m1s: 6 of nvidia.com/gpu requested, 5 of 8 healthy (after 2 more changes without an Event)",
	}
	for i := range max(len(want), len(d.told)) {
		var got, wanted string
		if i < len(d.told) {
			e := d.told[i]
			got = fmt.Sprintf("%s %s/%s/%s/%s", e.Type, e.Regarding.Kind, e.Regarding.Namespace, e.Regarding.Name, e.Regarding.UID)
			if r := e.Related; r != nil {
				got += fmt.Sprintf(" and %s/%s/%s/%s", r.Kind, r.Namespace, r.Name, r.UID)
			}
			got += fmt.Sprintf(": %s %s: %s", e.Action, e.Reason, e.Note)
		}
		if i < len(want) {
			wanted = want[i]
		}
		if got != wanted {
			t.Errorf("Event %d is\n  %s\nwant\n  %s", i, got, wanted)
		}
	}
}

// TestNumbersOfANode: those that matter, by source.
func TestNumbersOfANode(t *testing.T) {
	row := func(resource string, source count.Source, requested, healthy int64) count.Row {
		return count.Row{Node: "a", Resource: resource, Source: source, Numbers: count.Numbers{
			Capacity: 4, Allocatable: healthy, Requested: requested, Overcommitted: max(0, requested-healthy),
		}}
	}
	a, b := row("example.com/a", count.DevicePlugin, 1, 4), row("example.com/b", count.DynamicResources, 2, 1)
	for want, k := range map[string]node{
		"2 of example.com/b requested, 1 of 4 healthy (DRA)":                                         {over: true, rows: []count.Row{a, b}},
		"1 of example.com/a requested, 4 of 4 healthy; 1 of example.com/a requested, 4 of 4 healthy": {rows: []count.Row{a, a}},
		"none are left, and none are counted here":                                                   {},
	} {
		if got := k.numbers(); got != want {
			t.Errorf("they are %q, want %q", got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{"": "", "1234567890": "1234567890", "12345678901": "1234567…", "123456ééé": "123456…", "éééééé": "ééé…"} {
		if got := clip(text, 10); got != want {
			t.Errorf("clip(%q) is %q, want %q", text, got, want)
		}
	}
}
