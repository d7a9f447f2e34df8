package publish

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEventsOfAnyHistory: whatever happens, no reason comes twice within 15 minutes for an
// object, no hour has more than 60 Events about nodes, all of them can be written,
// and once it is quiet everybody has been told how it is.
func TestEventsOfAnyHistory(t *testing.T) {
	nodes := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := newDiary(t, time.Duration(r.IntN(60))*time.Second)
		at, over, shards := time.Duration(0), map[string]bool{}, 0
		var p Pass
		for range 300 {
			at += time.Duration(r.IntN(1+r.IntN(60))) * time.Second
			for range r.IntN(4) {
				node := nodes[r.IntN(len(nodes))]
				over[node] = !over[node]
			}
			shards = (shards + r.IntN(2)) % 3
			p = Pass{Sets: published(shards), Err: []error{nil, nil, errWrite, behind, errLong}[r.IntN(5)]}
			if r.IntN(5) > 0 {
				p.Snapshot = counted(those(over)...)
			}
			d.pass(at, p)
		}
		d.pass(at+time.Second, Pass{Sets: published(shards), Snapshot: counted(those(over)...)})
		d.until(at + 2*time.Hour)
		d.check(seed, over, shards)
	}
}

func those(set map[string]bool) (names []string) {
	for name, in := range set {
		if in {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// check is the reader of a diary.
func (d *diary) check(seed uint64, over map[string]bool, shards int) {
	d.Helper()
	word := map[string]string{} // the last about each node, set and publishing
	last := map[string]time.Duration{}
	var hour []time.Duration
	for _, e := range d.told {
		about := e.Regarding.Kind + "/" + e.Regarding.Name
		if before, ok := last[about+e.Reason]; ok && e.at-before < 15*time.Minute {
			d.Errorf("history %d: %s comes %v after the last", seed, e, e.at-before)
		}
		last[about+e.Reason] = e.at
		if e.Note == "" || len(e.Note) > 1024 {
			d.Errorf("history %d: %s has a note of %d bytes", seed, e, len(e.Note))
		}
		switch {
		case e.Regarding.Kind == "Node":
			hour = append(hour, e.at)
			word[e.Regarding.Name] = e.Reason
		case strings.HasPrefix(e.Reason, "Nodes"):
			_, names, _ := strings.Cut(e.Note, "started: ")
			if names == "" {
				_, names, _ = strings.Cut(e.Note, "in an hour: ")
			}
			for name := range strings.SplitSeq(names, ", ") {
				word[name] = "GPUs" + strings.TrimPrefix(e.Reason, "Nodes")
			}
		case strings.HasPrefix(e.Reason, "Shards"):
			word[about] = e.Reason
		default:
			word["publishing"] = e.Reason
		}
	}
	for i := range hour {
		if j := i + 60; j < len(hour) && hour[j]-hour[i] < time.Hour {
			d.Errorf("history %d: 61 Events about nodes within %v", seed, hour[j]-hour[i])
			break
		}
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if (word[name] == "GPUsOvercommitted") != over[name] {
			d.Errorf("history %d: the last of node %s is %q, and overcommitted is %v", seed, name, word[name], over[name])
		}
	}
	if w := word["publishing"]; w != "PublishingStarted" && w != "PublishingRecovered" {
		d.Errorf("history %d: the last of publishing is %q", seed, w)
	}
	if w := word["ConfigMap/gpu-capacity"]; w != "" && (w == "ShardsNeeded") != (shards > 0) {
		d.Errorf("history %d: the last of %d shards is %q", seed, shards, w)
	}
	if n := len(d.nodes.known); n > len(those(over))+len(hour) {
		d.Errorf("history %d: %d nodes are remembered", seed, n)
	}
}

// TestNodesBeyondTheBudget are told together, and none is forgotten before it is.
func TestNodesBeyondTheBudget(t *testing.T) {
	for _, delay := range []time.Duration{0, DefaultEventDelay} {
		d := newDiary(t, delay)
		d.pass(0, Pass{Snapshot: counted(), Sets: published(0)})
		nodes := names(100)
		for i := 1; i < 30; i++ {
			over := nodes
			if i >= 20 {
				over = nodes[:10] // 90 recover
			}
			if i >= 25 {
				over = nodes[:1] // 9 do
			}
			d.pass(time.Duration(i)*time.Minute, Pass{Snapshot: counted(over...), Sets: published(0)})
		}
		d.until(time.Hour) // without another pass
		own := map[string]int{}
		var together []string
		for _, e := range d.told {
			if e.Regarding.Kind == "Node" {
				own[fmt.Sprint(e.at-delay, " ", e.Reason)]++
			} else if _, names, ok := strings.Cut(e.Note, "for there are no more than 60 Events about nodes in an hour: "); ok {
				together = append(together, fmt.Sprint(e.at-delay, " ", e.Reason, " ", strings.Fields(e.Note)[0], " ", len(strings.Split(names, ", "))))
			}
		}
		if len(own) != 1 || own["1m0s GPUsOvercommitted"] != 60 {
			t.Errorf("delay %v: of their own are %v", delay, own)
		}
		if want := []string{"1m0s NodesOvercommitted 40 10", "20m0s NodesRecovered 90 10", "35m0s NodesRecovered 9 9"}; !slices.Equal(together, want) {
			t.Errorf("delay %v: together are %q, want %q", delay, together, want)
		}
	}
}

// TestANodeRecoversAfterLong, without a delay too.
func TestANodeRecoversAfterLong(t *testing.T) {
	for _, delay := range []time.Duration{0, DefaultEventDelay} {
		d := newDiary(t, delay)
		d.pass(0, Pass{Snapshot: counted(), Sets: published(0)})
		d.pass(0, Pass{Snapshot: counted("a"), Sets: published(0)})
		d.pass(time.Hour, Pass{Snapshot: counted(), Sets: published(0)})
		d.until(2 * time.Hour)
		if last := d.told[len(d.told)-1]; last.Reason != EventRecovered || last.at != time.Hour+delay {
			t.Errorf("delay %v: the last is %v", delay, last)
		}
	}
}

// TestFewNodesAreRemembered: those that are well are forgotten.
func TestFewNodesAreRemembered(t *testing.T) {
	d := newDiary(t, DefaultEventDelay)
	for i := range 2000 {
		d.pass(time.Duration(i)*time.Minute, Pass{Snapshot: counted(fmt.Sprint("node-", i)), Sets: published(0)})
	}
	// 15 minutes are 15 nodes, and one is overcommitted.
	if n := len(d.nodes.known); n > 20 {
		t.Errorf("%d nodes are remembered", n)
	}
	if n := len(d.nodes.spent); n > nodeEvents {
		t.Errorf("%d times are remembered", n)
	}
}
