package integration

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestADeleteMissedWhileTheWatchWasCut: the controller learns of it from a list,
// as a tombstone, without a restart.
func TestADeleteMissedWhileTheWatchWasCut(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.bound("stays", "gpu-1", 1)
	e.bound("goes", "gpu-1", 2)
	e.bound("is-another", "gpu-1", 4)
	var w wire
	e.start(w.through)
	e.shows("gpu-1=7")
	lists := w.read(func(w *wire) int { return w.relists })

	w.sever()
	e.remove("goes")
	// Deleted and made anew under the same name: one update, with another UID.
	e.remove("is-another")
	e.eventually("the name to be free", func() error { return e.ensure("is-another", "gpu-1", 3) })
	w.mend()

	e.eventually("the row to be right", func() error {
		cm, err := e.configMap()
		if err != nil {
			return err
		}
		return errors.Join(e.ensure("is-another", "gpu-1", 3), sameRows(map[string]string{"gpu-1": "4"}, cm.Data))
	})
	if n := w.read(func(w *wire) int { return w.relists }) - lists; n < 1 {
		t.Error("pods were not listed anew: the delete came over the watch, and nothing was tested")
	}
}

// ensure makes a bound pod unless it is there. KWOK deletes by name and knows no
// UID: a delete that it owes an earlier pod of the name may hit this one at any
// time, which is then made once more.
func (e *env) ensure(name, node string, gpus int) error {
	pod := e.pod(name, gpus)
	pod.Spec.NodeName = node
	_, err := e.client.CoreV1().Pods(e.namespace).Create(e.Context(), pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// TestRestartWhilePodsWereDeleted: nothing is known of before but what the
// ConfigMap says, and that is not believed.
func TestRestartWhilePodsWereDeleted(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	for i := range 4 {
		e.bound(fmt.Sprintf("p-%d", i), "gpu-1", 1)
	}
	first := e.start()
	e.shows("gpu-1=4")
	first.stop()

	e.remove("p-0")
	e.finish("p-1", corev1.PodFailed)
	e.node("gpu-2", 4)
	e.bound("p-9", "gpu-2", 3)
	if cm, err := e.configMap(); err != nil || cm.Data["gpu-1"] != "4" {
		t.Fatalf("something wrote while no controller ran: %v, %v", cm, err)
	}
	e.start()
	e.shows("gpu-1=2 gpu-2=3")
}

// TestRestartWithNothingChanged writes nothing.
func TestRestartWithNothingChanged(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.bound("a", "gpu-1", 2)
	first := e.start()
	before := e.shows("gpu-1=2")
	first.stop()
	c := e.start()
	e.eventually("readiness", c.ready)
	c.quiet()
	after, err := e.configMap()
	e.must(err)
	if after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a restart wrote: resourceVersion went from %s to %s", before.ResourceVersion, after.ResourceVersion)
	}
}
