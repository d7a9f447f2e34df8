// Package publish is actuation: a Snapshot in, ConfigMaps in the cluster out.
//
// It decides first, without touching anything: render.go and document.go say what
// should be there, table.go on how many objects it goes, diff.go what of that is
// missing. Then it acts at most once on each object. Equal content is never
// written, because the write would come back as an event and start the next pass.
// Every update carries the resourceVersion that the decision was based on, so that
// the API server refuses it if somebody was faster; the refusal is returned, and
// the queue tries again later. docs/configmaps.md is the promise made to readers.
package publish

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Options says what is published, and where.
type Options struct {
	Namespace string
	// Name is the ConfigMap that counts nvidia.com/gpu. It also tells one
	// controller's objects from another's in the same namespace, as a label.
	Name string
	// Resources get a ConfigMap each, named by SummaryName.
	Resources []string
	// CapacityName is the ConfigMap with everything there is to know, "" for none.
	CapacityName string
	// Term is the term of the lease under which all this is written, 0 without a
	// lease. It is on every base object.
	Term int64
	// MaxObjectBytes is the weight from which on rows move into shards, 0 for
	// DefaultMaxObjectBytes.
	MaxObjectBytes int
}

// Cache is the watched copy of all ConfigMaps that Selector selects.
type Cache interface {
	// Published returns one of them, nil if there is none, and the resourceVersion
	// up to which that is so.
	Published(name string) (object *corev1.ConfigMap, observed string)
	// AllPublished returns all of them, in any order.
	AllPublished() []*corev1.ConfigMap
}

// Publisher keeps ConfigMaps equal to the latest snapshot. One goroutine at a time
// may call it.
type Publisher struct {
	Options
	client  corev1client.ConfigMapInterface
	cache   Cache
	sets    []set
	objects map[string]*object
	table   table // of one set at a time, kept for its memory
}

// New makes a publisher. It sends nothing.
func New(client corev1client.ConfigMapsGetter, o Options, cache Cache) *Publisher {
	if o.MaxObjectBytes == 0 {
		o.MaxObjectBytes = DefaultMaxObjectBytes
	}
	p := &Publisher{Options: o, client: client.ConfigMaps(o.Namespace), cache: cache, objects: make(map[string]*object)}
	p.sets = append(p.sets, summarySet(o.Name, count.NVIDIA))
	for _, resource := range o.Resources {
		p.sets = append(p.sets, summarySet(SummaryName(o.Name, resource), resource))
	}
	if o.CapacityName != "" {
		p.sets = append(p.sets, capacitySet(o.CapacityName))
	}
	return p
}

// Publish makes the ConfigMaps say what the snapshot says. It never retries: after
// an error calling again in a while is right, a conflict being an error like any
// other. One set of objects that fails does not keep the others from being
// written, and Result has what was written in either case.
func (p *Publisher) Publish(ctx context.Context, snap *count.Snapshot) (Result, error) {
	pass := pass{Publisher: p, keep: make(map[string]bool), unsure: make(map[string]bool)}
	var errs []error
	for _, s := range p.sets {
		err := pass.publish(ctx, s, snap)
		if err != nil {
			pass.unsure[s.name] = true
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return pass.result, join(append(errs, context.Cause(ctx)))
		}
		if errors.Is(err, ErrFenced) {
			return pass.result, join(errs) // what is left is the later leader's to sweep
		}
	}
	return pass.result, join(append(errs, pass.sweep(ctx)...))
}

// pass is one call of Publish.
type pass struct {
	*Publisher
	result Result
	keep   map[string]bool // objects that have a place in what is published now
	unsure map[string]bool // sets that could not be written completely
}

// publish makes one set of objects right: the shards first, the base last. The
// base names the generation of each shard, so a reader who comes in between sees
// that they do not belong together yet. Whoever wrote the base first would promise
// something that is not there, for as long as a crash in between lasts.
func (p *pass) publish(ctx context.Context, s set, snap *count.Snapshot) error {
	base := p.object(s.name, s.name)
	have, err := base.believed(ctx)
	if err != nil {
		return err
	}
	observed := versions(snap.Observed)
	veto := fenceTerm(have, p.Term)
	if veto == nil {
		veto = fence(have, versions(cmp.Or(snap.Complete, snap.Observed)))
	}
	want := s.head(snap)
	want.observed, want.labels = observed, p.labels()
	want.annotations[AnnotationBase] = s.name
	if p.Term > 0 {
		want.annotations[AnnotationTerm] = number(p.Term)
	}
	p.table.reset(s.key)
	s.rows(snap, &p.table)

	parts := p.table.split(p.table.shards(weigh(want.data), p.MaxObjectBytes, shardsOf(have)))
	if parts == nil {
		p.table.fill(&want, dataOf(have), p.table.pieces)
	} else {
		generations := make([]string, len(parts))
		for i, part := range parts {
			if generations[i], err = p.shard(ctx, s.name, i, part, veto); err != nil {
				return err
			}
		}
		describe(&want, generations)
	}
	return p.put(ctx, base, have, want, veto)
}

// shard makes one shard right and returns its generation.
func (p *pass) shard(ctx context.Context, base string, index int, part []piece, veto error) (generation string, err error) {
	o := p.object(base, shardName(base, index))
	have, err := o.believed(ctx)
	if err != nil {
		return "", err
	}
	want := content{labels: p.labels()}
	p.table.fill(&want, dataOf(have), part)
	generation = o.generation(have, want)
	want.annotations = shardAnnotations(base, index, generation)
	return generation, p.put(ctx, o, have, want, veto)
}

// put writes an object if it differs from what it should say, unless there is a
// veto.
func (p *pass) put(ctx context.Context, o *object, have *corev1.ConfigMap, want content, veto error) error {
	p.keep[o.name] = true
	changes := compare(have, want)
	switch {
	case len(changes) == 0:
		o.right = have.ResourceVersion
		return nil
	case veto != nil:
		return veto
	}
	write, err := o.write(ctx, have, want)
	if err != nil {
		return err
	}
	write.Changes = changes
	p.result.Writes = append(p.result.Writes, write)
	return nil
}

// sweep deletes what is ours and has no place any more: shards of a set that
// became smaller, what a crash has left of one, and objects that the flags of an
// earlier run asked for. Their numbers would otherwise stand still for ever and
// look alive. It comes last, when no base names them any more.
func (p *pass) sweep(ctx context.Context) (errs []error) {
	for _, cm := range p.cache.AllPublished() {
		base, ok := p.belongs(cm)
		if !ok {
			continue
		}
		if o := p.object(base, cm.Name); o.removed != cm.UID {
			o.seen = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.objects)) {
		o := p.objects[name]
		if p.keep[name] || p.unsure[o.base] || !o.seen {
			continue
		}
		deleted, err := o.remove(ctx)
		errs = append(errs, err)
		if deleted {
			p.result.Writes = append(p.result.Writes, Write{Name: name, Action: Deleted, Reason: Unneeded})
		}
	}
	return errs
}

// belongs reports whether an object with our labels is one of ours and of which
// set: by its own account, or by its name if it lost its annotations. A copy that
// somebody made under another name is none.
func (p *Publisher) belongs(cm *corev1.ConfigMap) (base string, ok bool) {
	if base, shard := cm.Annotations[AnnotationBase], cm.Annotations[AnnotationShard]; base != "" {
		index, err := strconv.Atoi(shard)
		return base, cm.Name == base && shard == "" || err == nil && cm.Name == shardName(base, index-1)
	}
	for _, s := range p.sets {
		if number, ok := strings.CutPrefix(cm.Name, s.name+shardInfix); ok {
			index, err := strconv.Atoi(number)
			return s.name, err == nil && cm.Name == shardName(s.name, index-1)
		}
	}
	return "", false
}

func (p *Publisher) object(base, name string) *object {
	o := p.objects[name]
	if o == nil {
		o = &object{base: base, name: name, publisher: p}
		p.objects[name] = o
	}
	return o
}
