package gpudriver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
	"github.com/gpu-summary/gpu-summary-controller/lab/realnode"
)

// testImage is testprogram, in an image.
const testImage = "docker.io/local/gpudriver-test:1"

// theNode is the real node of the tests, once one of them has asked for it.
var theNode *realnode.Node

// runtimeDir has the node's container runtime.
var runtimeDir string

func nodeOptions() plane.Options { return plane.Options{RealNode: realnode.Check() == nil} }

// realNode starts the node the first time, or skips the test and says what is missing.
func realNode(t *testing.T) *realnode.Node {
	t.Helper()
	if err := realnode.Check(); err != nil {
		t.Skip(err)
	}
	if labPlane == nil {
		t.Skip("needs a control plane: not with -short")
	}
	if theNode != nil {
		return theNode
	}
	// In front of the machine's runc, so that any containerd will do.
	dir, err := os.MkdirTemp("", "gpudriver") //nolint:usetesting // it is needed after this test
	must(t, err)
	runtimeDir = dir
	must(t, os.Rename(build(t, "../cmd/gpudriver"), filepath.Join(dir, RuntimeName)))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	node, err := realnode.Start(t.Context(), realnode.Options{
		Plane: labPlane, Progress: os.Stderr,
		KubeletConfig: map[string]any{
			"nodeStatusUpdateFrequency": "1s", // of changes it tells this often
			// A claim that could not be prepared, with the driver just restarting, is not an
			// error of the pod's sync, and comes up again with the next one.
			"syncFrequency": "2s",
		},
	})
	must(t, err)
	theNode = node // from here on TestMain stops it
	must(t, node.LoadProgram(t.Context(), testImage, build(t, "./testprogram", "CGO_ENABLED=0")))
	return node
}

func stopRealNode() error {
	if theNode == nil {
		return nil
	}
	return errors.Join(theNode.Stop(), os.RemoveAll(runtimeDir))
}

// build builds a command.
func build(t *testing.T, command string, env ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(command))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, command)
	cmd.Env = append(append(os.Environ(), "GOWORK=off"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", command, err, out)
	}
	return program
}

// onNode is a test on the real node, with a driver of its own.
type onNode struct {
	*testCluster
	node   *realnode.Node
	driver *Driver
}

func newOnNode(t *testing.T, mode Mode, resources ...string) *onNode {
	t.Helper()
	n := &onNode{node: realNode(t)}
	n.testCluster = newCluster(t)
	// The driver is outside of the node and reaches in by its directories.
	k := &kubelet{T: t, dir: n.node.KubeletDir()}
	n.driver = k.run(Options{Node: n.node.Name(), Mode: mode, Client: n.client}, resources...)
	return n
}

// has waits until the node's status has these numbers of devices.
func (n *onNode) has(resource corev1.ResourceName, capacity, allocatable int64) {
	n.Helper()
	eventually(n.T, fmt.Sprintf("node to have %d %s, %d of them allocatable", capacity, resource, allocatable), func() error {
		node, err := n.client.CoreV1().Nodes().Get(n.Context(), n.node.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		all, healthy := node.Status.Capacity[resource], node.Status.Allocatable[resource]
		if all.Value() != capacity || healthy.Value() != allocatable {
			return fmt.Errorf("it has %d and %d", all.Value(), healthy.Value())
		}
		return nil
	})
}

// pod describes one that says what it was given, on the real node.
func (n *onNode) pod(name string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector:  map[string]string{plane.RealNodeLabel: "true"},
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "c", Image: testImage, Args: args, ImagePullPolicy: corev1.PullNever}},
		},
	}
}

// delete deletes a pod and waits until the kubelet has let go of its devices.
func (n *onNode) delete(pod string) {
	pods := n.client.CoreV1().Pods(n.namespace)
	err := pods.Delete(context.Background(), pod, metav1.DeleteOptions{})
	eventually(n.T, "pod "+pod+" to go", func() error {
		if err == nil {
			_, err = pods.Get(context.Background(), pod, metav1.GetOptions{})
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errNotYet)
	})
}

// events are what the kubelet and the scheduler say.
func (n *onNode) events() string {
	list, err := n.client.CoreV1().Events(n.namespace).List(n.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, e := range list.Items {
		lines = append(lines, e.InvolvedObject.Name+": "+e.Message)
	}
	return strings.Join(lines, "\n")
}

// run creates the pod and returns the devices it has found, by variable, once it is in
// the phase.
func (n *onNode) run(pod *corev1.Pod, phase corev1.PodPhase) map[string]string {
	n.Helper()
	pods := n.client.CoreV1().Pods(n.namespace)
	eventually(n.T, "pod "+pod.Name, func() error { // the namespace's service account takes a moment
		_, err := pods.Create(n.Context(), pod, metav1.CreateOptions{})
		return err
	})
	n.Cleanup(func() { n.delete(pod.Name) })
	eventually(n.T, fmt.Sprintf("pod %s to be %s", pod.Name, phase), func() error {
		now, err := pods.Get(n.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now.Status.Phase != phase {
			return fmt.Errorf("it is %s; events: %s", now.Status.Phase, n.events())
		}
		return nil
	})
	found := map[string]string{}
	eventually(n.T, "the log of "+pod.Name, func() error {
		text, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(n.Context())
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			variable, value, isOne := strings.Cut(strings.TrimSpace(line), "=")
			if !isOne {
				return nil // what comes last
			}
			found[variable] = value
		}
		return errNotYet
	})
	return found
}
