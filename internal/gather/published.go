package gather

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

const (
	// readings bounds how often the set is read anew, and pause is between two. What
	// is between the first shard of a set and its base takes seconds at most.
	readings = 10
	pause    = time.Second
	// getTimeout bounds the wait for one ConfigMap.
	getTimeout = 30 * time.Second
	// mostShards is more than are ever published.
	mostShards = 1 << 14
)

// Published reads what the controller has published under --capacity-name, shards
// included, as docs/configmaps.md says it is read: all of one state, or an error. The
// snapshot is the one that was published, but for Complete, which is not. Reasons
// that a later controller may have words for are left out.
func Published(ctx context.Context, client corev1client.ConfigMapsGetter, namespace, name string) (*count.Snapshot, error) {
	s := set{client: client.ConfigMaps(namespace), namespace: namespace, name: name}
	for reading := 1; ; reading++ {
		base, shards, err := s.read(ctx)
		switch {
		case err == nil:
			return s.snapshot(base, shards)
		case !errors.Is(err, errRewritten):
			return nil, err
		case reading == readings:
			return nil, fmt.Errorf("ConfigMap %s: %w, in each of %d readings (if no controller runs, one died while it wrote: start it)", s, err, reading)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("ConfigMap %s: %w: %w", s, err, context.Cause(ctx))
		}
	}
}

// errRewritten is returned for a set that is being written.
var errRewritten = errors.New("does not fit together with its shards")

// set is a ConfigMap with its shards.
type set struct {
	client          corev1client.ConfigMapInterface
	namespace, name string
}

func (s set) String() string { return s.namespace + "/" + s.name }

// read reads the base and the shards that it names, and compares.
func (s set) read(ctx context.Context) (base *corev1.ConfigMap, shards []*corev1.ConfigMap, err error) {
	if base, err = s.get(ctx, s.name); err != nil {
		return nil, nil, s.advise(s.name, err)
	}
	if other := base.Annotations[publish.AnnotationBase]; other != "" && other != s.name {
		return nil, nil, fmt.Errorf("ConfigMap %s is a part of %s: read that", s, other)
	}
	list := base.Annotations[publish.AnnotationGenerations]
	if list == "" {
		return base, nil, nil
	}
	var generations []string
	if err := json.Unmarshal([]byte(list), &generations); err != nil || len(generations) > mostShards {
		return nil, nil, fmt.Errorf("ConfigMap %s: annotation %s is not what the controller writes: has somebody edited it?", s, publish.AnnotationGenerations)
	}
	for i, want := range generations {
		name := fmt.Sprintf("%s-shard-%04d", s.name, i+1)
		shard, err := s.get(ctx, name)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil, fmt.Errorf("%w: %s is missing", errRewritten, name)
		case err != nil:
			return nil, nil, s.advise(name, err)
		}
		if have := shard.Annotations[publish.AnnotationGeneration]; have != want {
			return nil, nil, fmt.Errorf("%w: %s has generation %q, not %q", errRewritten, name, have, want)
		}
		shards = append(shards, shard)
	}
	return base, shards, nil
}

func (s set) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return within(ctx, getTimeout, func(ctx context.Context) (*corev1.ConfigMap, error) {
		return s.client.Get(ctx, name, metav1.GetOptions{})
	})
}

// advise says what to do.
func (s set) advise(name string, err error) error {
	what := fmt.Errorf("get ConfigMap %s/%s: %w", s.namespace, name, err)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w (is the controller installed, and is this its namespace and --capacity-name? "+
			"\"kubectl get configmaps -A -l app.kubernetes.io/managed-by=gpu-summary-controller\" finds what is published)", what)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w (ask for a Role in namespace %s with the verb get on configmaps, for this one and its shards)", what, s.namespace)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w (the API server does not know who you are: log in again)", what)
	}
	return what
}

// snapshot puts together what was published in parts.
func (s set) snapshot(base *corev1.ConfigMap, shards []*corev1.ConfigMap) (*count.Snapshot, error) {
	var summary struct {
		version
		count.Snapshot
	}
	if err := s.document(base, publish.KeySummary, &summary, &summary.version); err != nil {
		return nil, err
	}
	snap := &summary.Snapshot
	snap.Observed = observed(base.Annotations[publish.AnnotationObserved])
	if len(shards) == 0 {
		shards = []*corev1.ConfigMap{base}
	}
	for _, shard := range shards {
		var nodes struct {
			version
			Rows []count.Row `json:"rows"`
		}
		if err := s.document(shard, publish.KeyNodes, &nodes, &nodes.version); err != nil {
			return nil, err
		}
		snap.Rows = append(snap.Rows, nodes.Rows...)
	}
	slices.SortFunc(snap.Rows, func(a, b count.Row) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Source, b.Source))
	})
	for i := range snap.Summaries {
		p := &snap.Summaries[i].Pending
		p.Reasons = slices.DeleteFunc(p.Reasons, func(r count.Reason) bool { return r.Wait == 0 })
	}
	emptied(reflect.ValueOf(snap).Elem())
	return snap, nil
}

type version struct {
	SchemaVersion string `json:"schemaVersion"`
}

// document reads one document of a ConfigMap.
func (s set) document(cm *corev1.ConfigMap, key string, into any, v *version) error {
	at := fmt.Sprintf("ConfigMap %s/%s: %s", s.namespace, cm.Name, key)
	text, ok := cm.Data[key]
	if !ok {
		return fmt.Errorf("%s is missing (is %s the controller's --capacity-name, and not its --name?)", at, s.name)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%s: %w (has somebody edited it? The controller puts it right)", at, err)
	}
	if v.SchemaVersion != publish.SchemaVersion {
		return fmt.Errorf("%s has schema version %q, and this reads %q: use the version of the controller", at, v.SchemaVersion, publish.SchemaVersion)
	}
	return nil
}

// observed reads "pods@123 nodes@120".
func observed(text string) (o count.Observed) {
	stores := map[string]*string{
		"pods": &o.Pods, "nodes": &o.Nodes, draResources[0]: &o.Classes, draResources[1]: &o.Slices, draResources[2]: &o.Claims,
	}
	for part := range strings.FieldsSeq(text) {
		resource, version, _ := strings.Cut(part, "@")
		if store := stores[resource]; store != nil {
			*store = version
		}
	}
	return o
}

// emptied makes every empty list none: they are written as [] for readers, and count
// has none.
func emptied(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			emptied(v.Field(i))
		}
	case reflect.Slice:
		if v.Len() == 0 && v.CanSet() {
			v.SetZero()
		}
		for i := range v.Len() {
			emptied(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			emptied(v.Elem())
		}
	}
}
