package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// TestDeviceTurnsUnhealthy while all are taken: ConfigMap, Event and alert say so. (It
// comes before the other tests that overcommit the node, for a node has one Event of
// a reason in 15 minutes.)
func TestDeviceTurnsUnhealthy(t *testing.T) {
	e := newEnv(t)
	e.running(holder("all", devices))
	e.settled(devices)
	began := time.Now().Add(-time.Minute) // its clock has whole seconds
	e.sick(t)
	e.total(publish.AnnotationAllocatable, fmt.Sprint(devices-1))
	e.total(publish.AnnotationOvercommitted, "1")
	e.eventually("an Event about the node", func() error {
		return e.told(began, "GPUsOvercommitted", "8 of nvidia.com/gpu requested, 7 of 8 healthy")
	})
	e.alerts("GPUNodeOvercommitted", `{node="`+e.node.Name()+`", resource="nvidia.com/gpu", source="device-plugin"}`, 1)
	e.settled(devices)
	e.healed()
	e.total(publish.AnnotationOvercommitted, "0")
	e.settled(devices)
}

// sick makes a device unhealthy, at the latest until the end of the test.
func (e *env) sick(t *testing.T) {
	t.Helper()
	e.must(lab.driver.SetHealthy(lab.driver.Devices()[0].Name, false))
	t.Cleanup(e.healed)
}

// healed makes it healthy, and waits until the node has all devices.
func (e *env) healed() {
	e.Helper()
	e.must(lab.driver.SetHealthy(lab.driver.Devices()[0].Name, true))
	e.nodeHas(context.Background(), devices) // the test may be over
}

// nodeHas waits until so much of the node is allocatable.
func (e *env) nodeHas(ctx context.Context, gpus int64) {
	e.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e.eventuallyIn(ctx, fmt.Sprintf("the node to have %d GPUs", gpus), func() error {
		node, err := e.client.CoreV1().Nodes().Get(ctx, e.node.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if q := node.Status.Allocatable[count.NVIDIA]; q.Value() != gpus {
			return fmt.Errorf("it has %s", q.String())
		}
		return nil
	})
}

// told looks for an Event about the node that is no older.
func (e *env) told(since time.Time, reason, note string) error {
	events, err := e.client.EventsV1().Events(metav1.NamespaceDefault).List(e.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		return err
	}
	var others []string
	for _, event := range events.Items {
		if event.Regarding.Kind != "Node" || event.Regarding.Name != e.node.Name() || event.EventTime.Time.Before(since) {
			continue
		}
		if strings.Contains(event.Note, note) {
			return nil
		}
		others = append(others, event.Note)
	}
	return fmt.Errorf("there are %q", others)
}

// TestPluginVanishes under its pods, and returns, again and again: what pods hold they
// keep, nothing is free, and not more is written than changed.
func TestPluginVanishes(t *testing.T) {
	e := newEnv(t)
	t.Cleanup(func() { e.must(lab.driver.Return(context.Background())) })
	e.running(holder("a", 3))
	e.running(holder("b", 2))
	e.settled(5)
	const flaps = 3
	before := len(e.writes())
	for range flaps {
		e.must(lab.driver.Vanish(t.Context()))
		e.total(publish.AnnotationAllocatable, "0")
		e.total(publish.AnnotationOvercommitted, "5")
		e.total(publish.AnnotationFree, "0")
		e.settled(5)
		e.must(lab.driver.Return(t.Context()))
		e.total(publish.AnnotationAllocatable, fmt.Sprint(devices))
		e.total(publish.AnnotationOvercommitted, "0")
		e.settled(5)
	}
	// Two objects, two changes each time. A kubelet may report in two steps.
	if n := len(e.writes()) - before; n < 2*2*flaps || n > 2*2*2*flaps {
		t.Errorf("%d writes while the plugin went and came %d times", n, flaps)
	}
}

// TestKubeletRestarts: for a moment the node has no devices, its pods go on, and the
// number does not move.
func TestKubeletRestarts(t *testing.T) {
	e := newEnv(t)
	e.running(holder("a", 2))
	e.settled(2)
	seen, stop := e.rowsSeen()
	e.must(e.node.Kubelet().Restart(t.Context()))
	e.nodeHas(t.Context(), devices)
	e.eventually("the kubelet to know its pods and devices", func() error {
		n, err := e.kubeletSays(t.Context(), e.node)
		if err == nil && n != 2 {
			err = fmt.Errorf("it has given away %d", n)
		}
		return err
	})
	// A device plugin that registers is not yet one that is used.
	e.running(holder("b", 1))
	e.settled(3)
	stop()
	for _, row := range *seen {
		if row != "2" && row != "3" {
			t.Errorf("for a time it was %q", row)
		}
	}
	pod := e.reaches("a", corev1.PodRunning)
	if n := pod.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("the container was restarted %d times", n)
	}
}

// rowsSeen watches the node's row until stop is called.
func (e *env) rowsSeen() (seen *[]string, stop func()) {
	e.Helper()
	cm, err := e.site.configMap(e.Context())
	e.must(err)
	watch, err := e.client.CoreV1().ConfigMaps(e.site.namespace).Watch(e.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + cm.Name, ResourceVersion: cm.ResourceVersion,
	})
	e.must(err)
	seen = new([]string)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			if cm, ok := event.Object.(*corev1.ConfigMap); ok {
				*seen = append(*seen, cm.Data[e.node.Name()])
			}
		}
	}()
	return seen, func() { watch.Stop(); <-done }
}
