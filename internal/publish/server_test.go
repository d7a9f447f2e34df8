package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// server is as much of an API server as a publisher uses, so that thousands of
// histories can be played. That the real one behaves like this is what the
// integration tests are for.
type server struct {
	corev1client.ConfigMapInterface // the rest is not implemented

	version int
	objects map[string]*corev1.ConfigMap
	writes  []string // names, in order
	bytes   int      // of data, in all writes
	// fail, if set, is asked about each write, by its number; before says that
	// the error comes before it takes effect, and not after.
	fail func(n int) (before bool, err error)
	// wrote is called after each write that took effect.
	wrote func()
}

func newServer() *server {
	return &server{version: 1000, objects: map[string]*corev1.ConfigMap{}}
}

func (s *server) ConfigMaps(string) corev1client.ConfigMapInterface { return s }

func (s *server) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	if cm := s.objects[name]; cm != nil {
		return cm.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(configMaps, name)
}

func (s *server) Create(_ context.Context, cm *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	return s.write(cm.Name, func() (*corev1.ConfigMap, error) {
		if s.objects[cm.Name] != nil {
			return nil, apierrors.NewAlreadyExists(configMaps, cm.Name)
		}
		cm = cm.DeepCopy()
		cm.UID = types.UID(fmt.Sprint("uid-", s.version))
		return cm, nil
	})
}

func (s *server) Update(_ context.Context, cm *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	return s.write(cm.Name, func() (*corev1.ConfigMap, error) {
		switch have := s.objects[cm.Name]; {
		case have == nil:
			return nil, apierrors.NewNotFound(configMaps, cm.Name)
		case have.ResourceVersion != cm.ResourceVersion:
			return nil, apierrors.NewConflict(configMaps, cm.Name, errors.New("somebody was faster"))
		}
		return cm.DeepCopy(), nil
	})
}

func (s *server) Delete(_ context.Context, name string, o metav1.DeleteOptions) error {
	_, err := s.write(name, func() (*corev1.ConfigMap, error) {
		switch have := s.objects[name]; {
		case have == nil:
			return nil, apierrors.NewNotFound(configMaps, name)
		case have.UID != *o.Preconditions.UID || have.ResourceVersion != *o.Preconditions.ResourceVersion:
			return nil, apierrors.NewConflict(configMaps, name, errors.New("it is another one"))
		}
		return nil, nil
	})
	return err
}

func (s *server) write(name string, effect func() (*corev1.ConfigMap, error)) (*corev1.ConfigMap, error) {
	var before bool
	var fails error
	s.writes = append(s.writes, name)
	if s.fail != nil {
		before, fails = s.fail(len(s.writes))
	}
	if fails != nil && before {
		return nil, fails
	}
	cm, err := effect()
	if err != nil {
		return nil, err
	}
	s.put(name, cm)
	if s.wrote != nil {
		s.wrote()
	}
	if cm != nil {
		s.bytes += weigh(cm.Data)
		cm = cm.DeepCopy()
	}
	return cm, fails
}

// put is what anybody else may do.
func (s *server) put(name string, cm *corev1.ConfigMap) {
	s.version++
	if cm == nil {
		delete(s.objects, name)
		return
	}
	cm.ResourceVersion = strconv.Itoa(s.version)
	s.objects[name] = cm
}

// edit changes an object as somebody with kubectl would.
func (s *server) edit(t *testing.T, name string, change func(*corev1.ConfigMap)) {
	t.Helper()
	cm, err := s.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(cm)
	s.put(name, cm)
}

// watched is a cache of the server that is as old as its last sync.
type watched struct {
	server  *server
	objects map[string]*corev1.ConfigMap
	version int
}

func (w *watched) sync() {
	w.version, w.objects = w.server.version, map[string]*corev1.ConfigMap{}
	for name, cm := range w.server.objects {
		if cm.Labels[labelManagedBy] == manager && cm.Labels[LabelInstance] == "gpu-summary" {
			w.objects[name] = cm.DeepCopy()
		}
	}
}

func (w *watched) Published(name string) (*corev1.ConfigMap, string) {
	return w.objects[name], strconv.Itoa(w.version)
}

func (w *watched) AllPublished() (all []*corev1.ConfigMap) {
	for _, cm := range w.objects {
		all = append(all, cm)
	}
	return all
}

func configMapWith(data map[string]string) *corev1.ConfigMap { return &corev1.ConfigMap{Data: data} }

// errMoving is what a reader gets who came in between.
var errMoving = errors.New("the shards do not belong together")

// read does what docs/configmaps.md tells readers to: it returns the annotations and
// the rows by key, for a document its rows as JSON.
func (s *server) read(name string) (map[string]string, map[string]string, error) {
	base := s.objects[name]
	if base == nil {
		return nil, nil, errMoving
	}
	parts := []map[string]string{base.Data}
	if list, ok := base.Annotations[AnnotationGenerations]; ok {
		var generations []string
		if err := json.Unmarshal([]byte(list), &generations); err != nil {
			return nil, nil, err
		}
		for i, generation := range generations {
			shard := s.objects[fmt.Sprintf("%s-shard-%04d", name, i+1)]
			if shard == nil || shard.Annotations[AnnotationGeneration] != generation {
				return nil, nil, errMoving
			}
			parts = append(parts, shard.Data)
		}
	}
	rows := map[string]string{}
	for _, part := range parts {
		part = maps.Clone(part)
		if text, ok := part[KeyNodes]; ok {
			var document struct{ Rows []json.RawMessage }
			if err := json.Unmarshal([]byte(text), &document); err != nil {
				return nil, nil, err
			}
			for _, row := range document.Rows {
				rows[string(row)] = ""
			}
			delete(part, KeyNodes)
		}
		maps.Copy(rows, part)
	}
	return base.Annotations, rows, nil
}

// world is a cluster with so many GPUs requested on each node.
func world(requested map[string]int64) count.World {
	w := count.World{NodesKnown: true}
	for node, n := range requested {
		eight := count.Amounts{{Resource: count.NVIDIA, Value: 8}}
		w.Nodes = append(w.Nodes, &count.Node{Name: node, Capacity: eight, Allocatable: eight})
		if n > 0 {
			w.Pods = append(w.Pods, &count.Pod{Key: "ns/" + node, Node: node, Requests: count.Amounts{{Resource: count.NVIDIA, Value: n}}})
		}
	}
	return w
}
