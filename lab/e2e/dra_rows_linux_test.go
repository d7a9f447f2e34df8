package e2e

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/lab/diff"
)

const capacityConfigMap = "gpu-capacity"

// rows waits until these are the rows of the node, of which there may be one for each
// source.
func (e *env) rows(want ...string) {
	e.Helper()
	e.eventually(fmt.Sprintf("rows %q", want), func() error {
		cm, err := e.client.CoreV1().ConfigMaps(e.site.namespace).Get(e.Context(), capacityConfigMap, metav1.GetOptions{})
		if err != nil {
			return err
		}
		rows, err := rowsIn(cm, e.node.Name())
		if err != nil {
			return err
		}
		var got []string
		for _, row := range rows {
			got = append(got, inWords(row))
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("they are %q", got)
		}
		return nil
	})
}

// rowsIn is what a ConfigMap says of whole GPUs of a node, by source.
func rowsIn(cm *corev1.ConfigMap, node string) (rows []count.Row, err error) {
	var document struct{ Rows []count.Row }
	if err := json.Unmarshal([]byte(cm.Data[publish.KeyNodes]), &document); err != nil {
		return nil, fmt.Errorf("read %s of ConfigMap %s: %w", publish.KeyNodes, cm.Name, err)
	}
	for _, row := range document.Rows {
		if row.Node == node && row.Resource == count.NVIDIA {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func inWords(row count.Row) string {
	text := fmt.Sprintf("%s: %d of %d healthy, %d requested, %d free, %d overcommitted",
		row.Source, row.Allocatable, row.Capacity, row.Requested, row.Free, row.Overcommitted)
	if row.Claimed != 0 {
		text += fmt.Sprintf(", %d claimed", row.Claimed)
	}
	return text
}

// allRows watches the node's rows until stop is called, which returns all that there
// were.
func (e *env) allRows() (stop func() []count.Row) {
	e.Helper()
	maps := e.client.CoreV1().ConfigMaps(e.site.namespace)
	cm, err := maps.Get(e.Context(), capacityConfigMap, metav1.GetOptions{})
	e.must(err)
	changes, err := maps.Watch(e.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + cm.Name, ResourceVersion: cm.ResourceVersion})
	e.must(err)
	var seen []count.Row
	var failed error
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for event := range changes.ResultChan() {
			rows, err := rowsOf(event, e.node.Name())
			if err != nil {
				select {
				case <-stopped: // a watch that is stopped may say so
				default:
					failed = err
				}
				return
			}
			seen = append(seen, rows...)
		}
	}()
	return func() []count.Row {
		e.Helper()
		select {
		case <-done:
			e.Errorf("the watch of ConfigMap %s has ended by itself", cm.Name)
		default:
		}
		close(stopped)
		changes.Stop()
		<-done
		e.must(failed)
		return seen
	}
}

func rowsOf(event watch.Event, node string) ([]count.Row, error) {
	cm, ok := event.Object.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("a watch sends %v", event.Object)
	}
	return rowsIn(cm, node)
}

// charged is what the scheduler's own NodeInfo has of the node, pods that DRA serves
// included: it goes by what they ask for.
func (e *env) charged() int64 {
	e.Helper()
	nodes, err := e.client.CoreV1().Nodes().List(e.Context(), metav1.ListOptions{})
	e.must(err)
	pods, err := e.client.CoreV1().Pods("").List(e.Context(), metav1.ListOptions{})
	e.must(err)
	return diff.Scheduler(pointers(nodes.Items), pointers(pods.Items))[diff.Key{Node: e.node.Name(), Resource: count.NVIDIA}]
}

func pointers[T any](items []T) (out []*T) {
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}
