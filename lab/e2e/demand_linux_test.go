package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// TestKubectlRunOfTwoGPUs: a pod as people start it by hand.
func TestKubectlRunOfTwoGPUs(t *testing.T) {
	e := newEnv(t)
	e.settled(0)
	overrides := `{"spec":{"containers":[{"name":"c","image":"` + program + `","args":["hold"],"resources":{"limits":{"nvidia.com/gpu":"2"}}}]}}`
	_, err := kubectl(t.Context(), "run", "gpu-a", "--image="+program, "--overrides="+overrides, "--namespace", e.namespace)
	e.must(err)
	e.reaches("gpu-a", corev1.PodRunning)
	e.settled(2)
}

// TestJobCompletes: its pod stays, with all that is in its spec, and holds nothing.
func TestJobCompletes(t *testing.T) {
	e := newEnv(t)
	jobs := e.client.BatchV1().Jobs(e.namespace)
	_, err := jobs.Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "train"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: holder("", 2).Spec}},
	}, metav1.CreateOptions{})
	e.must(err)
	var name string
	e.eventually("the Job's pod", func() error {
		pods, err := e.client.CoreV1().Pods(e.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=train"})
		if err == nil && len(pods.Items) != 1 {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}
		if err == nil {
			name = pods.Items[0].Name
		}
		return err
	})
	e.reaches(name, corev1.PodRunning)
	e.settled(2)
	e.end(name, 0)
	e.eventually("the Job to be complete", func() error {
		job, err := jobs.Get(t.Context(), "train", metav1.GetOptions{})
		if err == nil && job.Status.Succeeded != 1 {
			err = fmt.Errorf("%+v", job.Status)
		}
		return err
	})
	e.settled(0)
	e.reaches(name, corev1.PodSucceeded)
}

// TestMoreThanExist: what fits nowhere waits, for the reason that the scheduler gives,
// and is on no node.
func TestMoreThanExist(t *testing.T) {
	e := newEnv(t)
	e.running(holder("small", 2))
	e.create(holder("large", devices+1))
	e.total(publish.AnnotationPending, fmt.Sprint(devices+1))
	e.eventually("the scheduler to say why", func() error {
		pod, err := e.client.CoreV1().Pods(e.namespace).Get(t.Context(), "large", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable && strings.Contains(c.Message, "Insufficient nvidia.com/gpu") {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", pod.Status.Conditions)
	})
	e.eventually("the demand to be unschedulable", func() error {
		reasons, err := e.waiting()
		if err == nil && (len(reasons) != 1 || reasons[0] != (reason{"unschedulable", devices + 1, 1})) {
			err = fmt.Errorf("it is %v", reasons)
		}
		return err
	})
	e.settled(2)
	e.remove("large")
	e.total(publish.AnnotationPending, "0")
}

// reason is why so many pods wait.
type reason struct {
	Reason        string
	Devices, Pods int
}

// waiting is the demand in the cluster by reason.
func (e *env) waiting() ([]reason, error) {
	cm, err := e.client.CoreV1().ConfigMaps(e.site.namespace).Get(e.Context(), "gpu-capacity", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var summary struct {
		Resources []struct {
			Resource string
			Pending  struct{ Reasons []reason }
		}
	}
	if err := json.Unmarshal([]byte(cm.Data[publish.KeySummary]), &summary); err != nil {
		return nil, err
	}
	for _, r := range summary.Resources {
		if r.Resource == count.NVIDIA {
			return r.Pending.Reasons, nil
		}
	}
	return nil, fmt.Errorf("%s is in no summary", count.NVIDIA)
}

// TestInitContainersAndSidecars: what a pod takes is neither the sum nor the largest of
// its containers, and scheduler, kubelet and controller find the same.
func TestInitContainersAndSidecars(t *testing.T) {
	e := newEnv(t)
	always := corev1.ContainerRestartPolicyAlways
	sidecar := func(gpus int) corev1.Container {
		c := container("sidecar", gpus, "hold")
		c.RestartPolicy = &always
		return c
	}
	// As much as its greedier part, which is over.
	first := holder("init", 1)
	first.Spec.InitContainers = []corev1.Container{container("before", 2, "exit", "0")}
	e.running(first)
	e.settled(2)
	// A sidecar runs beside all that follows.
	second := holder("sidecar", 1)
	second.Spec.InitContainers = []corev1.Container{sidecar(1)}
	e.running(second)
	e.settled(4)
	// One that starts between two init containers runs beside the second only.
	third := holder("both", 1)
	third.Spec.InitContainers = []corev1.Container{container("before", 1, "exit", "0"), sidecar(1), container("between", 2, "exit", "0")}
	e.running(third)
	e.settled(7)

	// What runs now is what the pod-resources API has.
	list, err := podResources(t.Context(), e.node)
	e.must(err)
	given := map[string]int{}
	for _, p := range list {
		if p.Namespace == e.namespace {
			for _, c := range p.Containers {
				given[p.Name+"/"+c.Name] = len(nvidia(c))
			}
		}
	}
	for _, want := range []string{"init/c", "sidecar/c", "sidecar/sidecar", "both/c", "both/sidecar"} {
		if given[want] != 1 {
			t.Errorf("by the kubelet's pod-resources API %s has %d devices, want 1: %v", want, given[want], given)
		}
	}
	for _, name := range []string{"init", "sidecar", "both"} {
		e.remove(name)
	}
	e.settled(0)
}
