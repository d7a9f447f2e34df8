package plugin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/count/selector"
	"github.com/gpu-summary/gpu-summary-controller/internal/gather"
)

// need says how much something is needed.
type need uint8

const (
	unneeded need = iota
	useful        // done without, if that is how it has to be
	required
)

// wants is what a subcommand needs to know.
type wants struct {
	namespace string // of the pods, "" for all
	pods      labels.Selector
	nodes     need
	selected  labels.Selector
	shares    bool     // what each pod and each claim has of the numbers
	detail    []string // the nodes of which everything is wanted; those selected, if there is a selector
}

// reading is what was read, and counted.
type reading struct {
	facts    *facts // nil of what was published, and so are world and shares
	world    count.World
	shares   shares
	snapshot *count.Snapshot
	notes    []string
	// namespace is the only one of which pods were read, "" for all.
	namespace string
}

// read reads a cluster or a dump, and counts.
func (c *common) read(ctx context.Context, w wants) (*reading, error) {
	names, err := c.names()
	if err != nil {
		return nil, err
	}
	classes, err := c.classes(names)
	if err != nil {
		return nil, err
	}
	f := newFacts(names)
	f.nodeSelector, f.detail = w.selected, w.detail
	report, err := c.gather(ctx, gather.Scope{Namespace: w.namespace, PodSelector: w.pods, Nodes: w.nodes != unneeded, DRA: true}, f)
	if err != nil {
		return nil, err
	}
	if w.nodes == required && c.from == "" && !report.NodesKnown {
		return nil, fmt.Errorf("%w\n%s", report.Missing[0], wayOut)
	}
	r := &reading{facts: f, world: f.world(report, classes), notes: notes(report), namespace: w.namespace}
	if w.nodes != unneeded && c.from != "" && !report.NodesKnown {
		r.notes = append(r.notes, "there are no nodes in "+c.dump()+", and so nothing is known but what pods request")
	}
	if w.shares {
		// What classes select is asked for twice.
		r.world.DRA.Selectors = new(selector.Cache)
		r.shares = f.shares(r.world)
	}
	r.snapshot = count.Take(r.world)
	r.notes = append(r.notes, draNotes(r.snapshot.DRA, len(report.Missing) > 0)...)
	return r, nil
}

// count is read, or what was published where the flags ask for that. Only the
// snapshot is then there.
func (c *common) count(ctx context.Context, w wants) (*reading, error) {
	if c.fromConfigMap == "" {
		return c.read(ctx, w)
	}
	if w.selected != nil {
		return nil, errLabels
	}
	client, err := c.connect()
	if err != nil {
		return nil, err
	}
	namespace, err := c.namespace()
	if err != nil {
		return nil, err
	}
	snapshot, err := gather.Published(ctx, client.CoreV1(), namespace, c.fromConfigMap)
	if err != nil {
		return nil, err
	}
	return &reading{snapshot: snapshot, notes: draNotes(snapshot.DRA, false)}, nil
}

// draNotes says what of DRA is not in the numbers. saidWhy is whether it has been said
// already what could not be read.
func draNotes(dra *count.DRAStatus, saidWhy bool) (out []string) {
	if dra == nil {
		return nil
	}
	if dra.State != count.DRASynced && dra.State != count.DRAAbsent && !saidWhy {
		out = append(out, fmt.Sprintf("devices of DRA are not in the numbers, %s: %s", dra.State, dra.Reason))
	}
	for _, class := range dra.Classes {
		out = append(out, fmt.Sprintf("DeviceClass %s is %s", class.Class, class.Reason))
	}
	for _, pool := range dra.Pools {
		where := ""
		if pool.Node != "" {
			where = " on " + pool.Node
		}
		out = append(out, fmt.Sprintf("pool %s of %s%s has %d devices that are in no row: %s", pool.Pool, pool.Driver, where, pool.Devices, pool.Reason))
	}
	return out
}

// nothing says why there is nothing to show.
func (r *reading) nothing() string {
	const add = "--gpu-resource counts further resources as GPUs, as in --gpu-resource example.com/gpu"
	if r.facts == nil || len(r.facts.others) == 0 {
		return "no GPUs found; " + add
	}
	const most = 5
	others := slices.Sorted(maps.Keys(r.facts.others))
	if len(others) > most {
		others = append(others[:most], fmt.Sprintf("%d more", len(others)-most))
	}
	return "no GPUs found; " + add + "; nodes have " + strings.Join(others, ", ")
}

// several reports whether there is more than one resource, so that rows have to say
// which they are of.
func (r *reading) several() shown {
	if len(r.snapshot.Summaries) > 1 {
		return always
	}
	return wide
}

// within reports whether pods of a namespace were asked for.
func (r *reading) within(namespace string) bool { return r.namespace == "" || namespace == r.namespace }

// exists reports whether there is such a node, and true when nobody knows.
func (r *reading) exists(node string) bool {
	return !r.world.NodesKnown || r.facts.nodes[node] != nil
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}
