package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// container asks for so many GPUs, in the way most manifests do: as a limit.
func container(name string, gpus int, args ...string) corev1.Container {
	c := corev1.Container{Name: name, Image: program, Args: args, ImagePullPolicy: corev1.PullNever}
	if gpus > 0 {
		c.Resources.Limits = corev1.ResourceList{count.NVIDIA: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	}
	return c
}

// pod describes a pod with these containers.
func pod(name string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: containers},
	}
}

// holder describes a pod that has so many GPUs until it is told to end.
func holder(name string, gpus int) *corev1.Pod { return pod(name, container("c", gpus, "hold")) }

func (e *env) create(pod *corev1.Pod) {
	e.Helper()
	_, err := e.client.CoreV1().Pods(e.namespace).Create(e.Context(), pod, metav1.CreateOptions{})
	e.must(err)
}

// running creates the pod and waits until its containers run.
func (e *env) running(pod *corev1.Pod) {
	e.Helper()
	e.create(pod)
	e.reaches(pod.Name, corev1.PodRunning)
}

// reaches waits until the pod is in the phase.
func (e *env) reaches(name string, phase corev1.PodPhase) (pod *corev1.Pod) {
	e.Helper()
	e.eventually(fmt.Sprintf("pod %s to be %s", name, phase), func() (err error) {
		if pod, err = e.client.CoreV1().Pods(e.namespace).Get(e.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if pod.Status.Phase != phase {
			return fmt.Errorf("%s", describe(pod))
		}
		return nil
	})
	return pod
}

// end tells a holder to end, with this exit status.
func (e *env) end(name string, code int) {
	e.Helper()
	pod, err := e.client.CoreV1().Pods(e.namespace).Get(e.Context(), name, metav1.GetOptions{})
	e.must(err)
	client := &http.Client{Transport: &http.Transport{DialContext: e.node.Dial, DisableKeepAlives: true}}
	url := "http://" + net.JoinHostPort(pod.Status.PodIP, "8080") + "/exit?code=" + strconv.Itoa(code)
	e.eventually("pod "+name+" to take an order", func() error {
		response, err := client.Get(url)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", response.Status)
		}
		return nil
	})
}

// remove deletes a pod, whose containers have a second to end, and waits until it is gone.
func (e *env) remove(name string) {
	e.Helper()
	second := int64(1)
	pods := e.client.CoreV1().Pods(e.namespace)
	e.must(pods.Delete(e.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &second}))
	e.eventually("pod "+name+" to be gone", func() error {
		left, err := pods.List(e.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%s", describe(&left.Items[0]))
		}
		return err
	})
}

func (e *env) log(name, container string) string {
	e.Helper()
	text, err := e.client.CoreV1().Pods(e.namespace).GetLogs(name, &corev1.PodLogOptions{Container: container}).DoRaw(e.Context())
	e.must(err)
	return string(bytes.TrimSpace(text))
}

// played adds a node that KWOK plays, with GPUs. Its pods run as long as they are there,
// without a kubelet: it is for load, and for what has to happen while the real node
// stands still.
func (e *env) played(name string, gpus int) {
	e.Helper()
	list := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
		count.NVIDIA: *resource.NewQuantity(int64(gpus), resource.DecimalSI),
	}
	nodes := e.client.CoreV1().Nodes()
	_, err := nodes.Create(e.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		// Nothing gets there but what names the node.
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "played", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Capacity: list, Allocatable: list},
	}, metav1.CreateOptions{})
	e.must(err)
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		e.empty(ctx) // while there is somebody to end its pods
		if err := nodes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			e.Errorf("clean up: %v", err)
		}
	})
}

// bound describes a pod that is on a node without a scheduler's having put it there.
func bound(name, node string, gpus int) *corev1.Pod {
	p := holder(name, gpus)
	p.Spec.NodeName = node
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return p
}
