package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// What follows is the recipe of docs/configmaps.md, from its words alone: no name
// and no type of the code that writes is used but that of a row.

// published is what a reader has found.
type published struct {
	base   *corev1.ConfigMap
	shards int
	rows   map[string]string // of gpu-summary and its like
	nodes  []count.Row       // of gpu-capacity
}

// errMoving says that the shards do not belong together: somebody is writing.
var errMoving = errors.New("read again")

func readPublished(ctx context.Context, configMaps corev1client.ConfigMapInterface, name string) (*published, error) {
	base, err := configMaps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	p := &published{base: base, rows: map[string]string{}}
	var generations []string
	if list, ok := base.Annotations["gpu-summary/shard-generations"]; ok {
		if err := json.Unmarshal([]byte(list), &generations); err != nil {
			return nil, err
		}
	}
	p.shards = len(generations)
	parts := []map[string]string{base.Data}
	for i, generation := range generations {
		shard, err := configMaps.Get(ctx, fmt.Sprintf("%s-shard-%04d", name, i+1), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, errMoving
		case err != nil:
			return nil, err
		case shard.Annotations["gpu-summary/generation"] != generation:
			return nil, errMoving
		}
		parts = append(parts, shard.Data)
	}
	for _, data := range parts {
		if err := p.add(data); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *published) add(data map[string]string) error {
	for key, value := range data {
		switch key {
		case "summary.json":
		case "nodes.json":
			var document struct {
				SchemaVersion string      `json:"schemaVersion"`
				Rows          []count.Row `json:"rows"`
			}
			if err := json.Unmarshal([]byte(value), &document); err != nil {
				return err
			}
			if document.SchemaVersion != "1" {
				return fmt.Errorf("schemaVersion is %q", document.SchemaVersion)
			}
			p.nodes = append(p.nodes, document.Rows...)
		default:
			if _, ok := p.rows[key]; ok {
				return fmt.Errorf("%s is there twice", key)
			}
			p.rows[key] = value
		}
	}
	return nil
}

// sums returns what is requested by the rows, and by the totals that were published
// with them. Rows of different passes would nearly never add up.
func (p *published) sums() (rows, total int64, err error) {
	if text, ok := p.base.Data["summary.json"]; ok {
		var summary struct{ Resources []count.Summary }
		err = json.Unmarshal([]byte(text), &summary)
		for _, s := range summary.Resources {
			total += s.Requested
		}
		for _, row := range p.nodes {
			rows += row.Requested
		}
		return rows, total, err
	}
	total, err = strconv.ParseInt(p.base.Annotations["gpu-summary/requested"], 10, 64)
	for _, value := range p.rows {
		n, bad := strconv.ParseInt(value, 10, 64)
		rows, err = rows+n, errors.Join(err, bad)
	}
	return rows, total, err
}

// readers read for as long as the test lasts, and fail it when something does not
// belong together.
type readers struct {
	env  *env
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu            sync.Mutex
	whole, moving int
}

func (e *env) read(pause time.Duration, names ...string) *readers {
	ctx, cancel := context.WithCancel(e.Context())
	r := &readers{env: e, stop: cancel}
	for _, name := range names {
		r.wg.Go(func() {
			for ctx.Err() == nil {
				r.once(ctx, name)
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}
	e.Cleanup(r.end)
	return r
}

// end waits for the readers.
func (r *readers) end() {
	r.stop()
	r.wg.Wait()
}

func (r *readers) once(ctx context.Context, name string) {
	p, err := readPublished(ctx, r.env.client.CoreV1().ConfigMaps(r.env.namespace), name)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ctx.Err() != nil, apierrors.IsNotFound(err): // the first publish is still to come
	case errors.Is(err, errMoving):
		r.moving++
	case err != nil:
		r.env.Errorf("read %s: %v", name, err)
	default:
		r.whole++
		if rows, total, err := p.sums(); err != nil || rows != total {
			r.env.Errorf("%s is a mix: %d requested in %d rows and %d shards, %d in all, %v", name, rows, len(p.rows)+len(p.nodes), p.shards, total, err)
		}
	}
}
