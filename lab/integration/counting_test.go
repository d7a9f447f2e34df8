package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// TestAPodOfTwoGPUs is the whole life of a pod: nobody's, somebody's, nobody's. A
// pod counts on a node from its binding on, whatever a scheduler has in mind (R4).
func TestAPodOfTwoGPUs(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.start()
	e.shows("gpu-1=0")

	e.create(e.pod("gpu-a", 2))
	e.total(publish.AnnotationPending, "2")
	e.shows("gpu-1=0")

	e.must(e.client.CoreV1().Pods(e.namespace).Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-a"}, Target: corev1.ObjectReference{Kind: "Node", Name: "gpu-1"},
	}, metav1.CreateOptions{}))
	cm := e.shows("gpu-1=2")
	for annotation, want := range map[string]string{
		publish.AnnotationRequested: "2", publish.AnnotationAllocatable: "8", publish.AnnotationFree: "6",
		publish.AnnotationPending: "0", publish.AnnotationOvercommitted: "0", publish.AnnotationOrphaned: "0",
	} {
		if got := cm.Annotations[annotation]; got != want {
			t.Errorf("%s is %q, want %q", annotation, got, want)
		}
	}

	e.finish("gpu-a", corev1.PodSucceeded)
	e.shows("gpu-1=0")
}

// TestTheRealSchedulerPlacesAJob: the numbers follow a pod that nobody bound by
// hand and that ends by itself.
func TestTheRealSchedulerPlacesAJob(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 4)
	e.start()
	e.shows("gpu-1=0")
	template := e.pod("", 3)
	template.Spec.SchedulerName = ""
	template.Annotations = map[string]string{"lab.gpu-summary/run-seconds": "3"}
	_, err := e.client.BatchV1().Jobs(e.namespace).Create(t.Context(), jobOf("train", template), metav1.CreateOptions{})
	e.must(err)
	e.shows("gpu-1=3")
	e.shows("gpu-1=0")
}

func TestFinishedPodsAreLeftOut(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.bound("done", "gpu-1", 4)
	e.finish("done", corev1.PodSucceeded)
	e.bound("failed", "gpu-1", 3)
	e.finish("failed", corev1.PodFailed)
	e.bound("running", "gpu-1", 1)
	e.start()
	e.shows("gpu-1=1")
	e.finish("running", corev1.PodFailed)
	e.shows("gpu-1=0")
}

// TestOvercommittedAndOrphaned: nothing is lost when a device plugin or a node
// goes away under its pods.
func TestOvercommittedAndOrphaned(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.node("gpu-2", 8)
	e.start()
	e.bound("a", "gpu-1", 6)
	e.shows("gpu-1=6 gpu-2=0")

	e.eventually("a node without healthy devices", func() error {
		return retried(func() error {
			node, err := e.client.CoreV1().Nodes().Get(t.Context(), "gpu-1", metav1.GetOptions{})
			if err != nil {
				return err
			}
			node.Status.Allocatable["nvidia.com/gpu"] = *zero()
			_, err = e.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
			return err
		})
	})
	e.total(publish.AnnotationOvercommitted, "6")
	e.shows("gpu-1=6 gpu-2=0")
	e.total(publish.AnnotationFree, "8")

	// The garbage collector takes the pod too, but not within its first 40 s.
	e.must(e.client.CoreV1().Nodes().Delete(t.Context(), "gpu-1", metav1.DeleteOptions{}))
	e.total(publish.AnnotationOrphaned, "6")
	e.shows("gpu-2=0")
}

func TestWithoutNodesRowsFollowPods(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.start(func(_ *rest.Config, o *run.Options) { o.WatchNodes = false })
	e.shows("")
	e.bound("a", "gpu-1", 2)
	cm := e.shows("gpu-1=2")
	if free, ok := cm.Annotations[publish.AnnotationFree]; ok {
		t.Errorf("free is said to be %q though no node was looked at", free)
	}
	e.remove("a")
	e.shows("")
}

// TestScope: the server is asked for the pods in question only.
func TestScope(t *testing.T) {
	e, other := newEnv(t), newEnv(t)
	e.node("gpu-1", 8)
	labelled := e.pod("labelled", 2)
	labelled.Labels, labelled.Spec.NodeName = map[string]string{"team": "a"}, "gpu-1"
	e.create(labelled)
	e.bound("unlabelled", "gpu-1", 1)
	other.bound("elsewhere", "gpu-1", 4)

	for _, tc := range []struct {
		rows  string
		scope func(*run.Options)
	}{
		{"gpu-1=7", func(*run.Options) {}},
		{"gpu-1=3", func(o *run.Options) { o.WatchNamespace = e.namespace }},
		{"gpu-1=2", func(o *run.Options) { o.PodSelector = "team in (a, b)" }},
	} {
		c := e.start(func(_ *rest.Config, o *run.Options) { tc.scope(o) })
		e.shows(tc.rows)
		c.stop()
	}
}

// TestNodesWithoutGPUsHaveNoRow, unless a pod asks for some there.
func TestNodesWithoutGPUsHaveNoRow(t *testing.T) {
	e := newEnv(t)
	e.node("cpu-1", 0)
	e.node("gpu-1", 1)
	e.start()
	e.shows("gpu-1=0")
	e.bound("a", "cpu-1", 2)
	e.shows("gpu-1=0 cpu-1=2")
	e.total(publish.AnnotationOvercommitted, "2")
}
