package plane_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
	"github.com/gpu-summary/gpu-summary-controller/lab/testkit"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

func TestServerReportsTheVersion(t *testing.T) {
	info, err := labClient(t).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	got := [3]string{info.GitVersion, info.Major, info.Minor}
	if diff := cmp.Diff([3]string{plane.KubernetesVersion, "1", "37"}, got); diff != "" {
		t.Errorf("version (-want +got):\n%s", diff)
	}
}

func TestNodeBecomesReadyAndKeepsItsGPUs(t *testing.T) {
	node := newNode(t, labClient(t), corev1.ResourceList{
		gpu:                   resource.MustParse("8"),
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("40"),
	})
	want := map[string]string{"nvidia.com/gpu": "8", "cpu": "64", "memory": "256Gi", "pods": "40"}
	for what, list := range map[string]corev1.ResourceList{
		"capacity": node.Status.Capacity, "allocatable": node.Status.Allocatable,
	} {
		if diff := cmp.Diff(want, quantities(list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestNodeWithNothingButGPUsGetsTheRest(t *testing.T) {
	node := newNode(t, labClient(t), corev1.ResourceList{gpu: resource.MustParse("4")})
	want := map[string]string{"nvidia.com/gpu": "4", "cpu": "96", "memory": "1Ti", "pods": "110"}
	if diff := cmp.Diff(want, quantities(node.Status.Allocatable)); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
}

func TestPodIsScheduledRunsAndGoesAway(t *testing.T) {
	client := labClient(t)
	node := newNode(t, client, corev1.ResourceList{gpu: resource.MustParse("8")})
	pod := newPod(t, client, "scheduled", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node.Name}
	})
	running := awaitPhase(t, client, pod.Name, corev1.PodRunning)
	if running.Spec.NodeName != node.Name {
		t.Errorf("pod is on %q, want %q", running.Spec.NodeName, node.Name)
	}
	if len(running.Status.ContainerStatuses) != 1 || !running.Status.ContainerStatuses[0].Ready {
		t.Errorf("container statuses %+v, want one that is ready", running.Status.ContainerStatuses)
	}

	if err := client.CoreV1().Pods("default").Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the deleted pod to go away", func(ctx context.Context) error {
		_, err := client.CoreV1().Pods("default").Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			return errors.New("it is there")
		case apierrors.IsNotFound(err):
			return nil
		default:
			return err
		}
	})
}

func TestPodWithAPhaseOfItsOwnIsLeftAlone(t *testing.T) {
	client := labClient(t)
	node := newNode(t, client, corev1.ResourceList{gpu: resource.MustParse("8")})
	own := newPod(t, client, "loaded", func(p *corev1.Pod) {
		p.Labels = map[string]string{"lab.gpu-summary/phase": "Pending"}
		p.Spec.NodeName = node.Name
	})
	// KWOK has seen the first one when the second one, created later, runs.
	other := newPod(t, client, "played", func(p *corev1.Pod) { p.Spec.NodeName = node.Name })
	awaitPhase(t, client, other.Name, corev1.PodRunning)
	awaitPhase(t, client, own.Name, corev1.PodPending)
}

func TestJobCompletes(t *testing.T) {
	client := labClient(t)
	node := newNode(t, client, corev1.ResourceList{gpu: resource.MustParse("8")})
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "job-"},
		Spec:       batchv1.JobSpec{Template: template(node.Name)},
	}
	job.Spec.Template.Annotations = map[string]string{"lab.gpu-summary/run-seconds": "5"}
	job, err := client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the job to complete", func(ctx context.Context) error {
		job, err = client.BatchV1().Jobs("default").Get(ctx, job.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if job.Status.Succeeded != 1 || job.Status.CompletionTime == nil {
			return fmt.Errorf("status %+v", job.Status)
		}
		return nil
	})
	pod := onlyPodOf(t, client, job.Name)
	if pod.Status.Phase != corev1.PodSucceeded {
		t.Errorf("pod of the job is %s, want Succeeded", pod.Status.Phase)
	}
	// Times have whole seconds, so 5 s can look like 4.
	end := pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt
	if ran := end.Sub(pod.Status.StartTime.Time).Seconds(); ran < 4 || ran > 20 {
		t.Errorf("pod ran %.0f s, want 5", ran)
	}
}

func TestDeletedPodOfAJobFailsAndIsReplaced(t *testing.T) {
	client := labClient(t)
	node := newNode(t, client, corev1.ResourceList{gpu: resource.MustParse("8")})
	// Failed: no replacement as long as the old pod might still work, and
	// so none at all if nobody says how the old one ended.
	whenFailed := batchv1.Failed
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "long-"},
		Spec:       batchv1.JobSpec{Template: template(node.Name), PodReplacementPolicy: &whenFailed},
	}
	job.Spec.Template.Annotations = map[string]string{"lab.gpu-summary/run-seconds": "3600"}
	job, err := client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		withPods := metav1.DeletePropagationBackground
		_ = client.BatchV1().Jobs("default").Delete(context.Background(), job.Name,
			metav1.DeleteOptions{PropagationPolicy: &withPods})
	})
	first := awaitRunningPodOf(t, client, job.Name, "")
	if err := client.CoreV1().Pods("default").Delete(t.Context(), first, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRunningPodOf(t, client, job.Name, first)
}

// awaitRunningPodOf waits until the one pod of the job runs and is not the old
// one, and returns its name.
func awaitRunningPodOf(t *testing.T, client kubernetes.Interface, job, old string) (name string) {
	t.Helper()
	testkit.Eventually(t, "a running pod of the job", func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods("default").List(ctx, ofJob(job))
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("the job has %d pods", len(pods.Items))
		}
		pod := pods.Items[0]
		if pod.Status.Phase != corev1.PodRunning || pod.Name == old {
			return fmt.Errorf("pod %s is %s, old one %q", pod.Name, pod.Status.Phase, old)
		}
		name = pod.Name
		return nil
	})
	return name
}

// newNode creates a node and returns it when it is Ready and pods may go there.
func newNode(t *testing.T, client kubernetes.Interface, resources corev1.ResourceList) *corev1.Node {
	t.Helper()
	name := "node-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	testkit.Eventually(t, "node to be Ready and without taints", func(ctx context.Context) error {
		var err error
		if node, err = client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
				return nil
			}
		}
		return fmt.Errorf("conditions %v, taints %v", node.Status.Conditions, node.Spec.Taints)
	})
	return node
}

// newPod creates a pod that asks for two GPUs.
func newPod(t *testing.T, client kubernetes.Interface, name string, adjust func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}, Spec: template("").Spec}
	adjust(pod)
	pod, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// template is a pod of two GPUs, for the node if that is not "".
func template(node string) corev1.PodTemplateSpec {
	two := corev1.ResourceList{gpu: resource.MustParse("2")}
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name:      "main",
			Image:     "none",
			Resources: corev1.ResourceRequirements{Requests: two, Limits: two},
		}},
	}
	if node != "" {
		spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	return corev1.PodTemplateSpec{Spec: spec}
}

func awaitPhase(t *testing.T, client kubernetes.Interface, name string, want corev1.PodPhase) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	testkit.Eventually(t, fmt.Sprintf("pod %s to be %s", name, want), func(ctx context.Context) error {
		var err error
		if pod, err = client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if pod.Status.Phase != want {
			return fmt.Errorf("it is %s, conditions %v", pod.Status.Phase, pod.Status.Conditions)
		}
		return nil
	})
	return pod
}

func onlyPodOf(t *testing.T, client kubernetes.Interface, job string) corev1.Pod {
	t.Helper()
	pods, err := client.CoreV1().Pods("default").List(t.Context(), ofJob(job))
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 {
		t.Fatalf("the job has %d pods, want 1", len(pods.Items))
	}
	return pods.Items[0]
}

func ofJob(name string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + name}
}

func quantities(list corev1.ResourceList) map[string]string {
	m := map[string]string{}
	for name, quantity := range list {
		m[string(name)] = quantity.String()
	}
	return m
}
