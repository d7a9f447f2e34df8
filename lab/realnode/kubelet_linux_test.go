package realnode

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRestartedKubeletFindsItsPods, and takes new ones.
func TestRestartedKubeletFindsItsPods(t *testing.T) {
	n := labNode(t)
	ns := namespace(t)
	before := run(t, ns, pod("stays", "wait"), corev1.PodRunning)
	if err := n.Kubelet().Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, ns, pod("new", "hello"), corev1.PodSucceeded)
	after, err := client(t).CoreV1().Pods(ns).Get(t.Context(), "stays", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	was, is := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
	if is.ContainerID != was.ContainerID || is.State.Running == nil {
		t.Errorf("the pod's container was %+v and is %+v", was, is)
	}
}

// TestRunIsInside: with the node's directories and network, and its exit status.
func TestRunIsInside(t *testing.T) {
	n := labNode(t)
	var out bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", "test -S /var/lib/kubelet/device-plugins/kubelet.sock && cat /proc/sys/net/ipv4/ip_forward && ls /sys/class/net >/dev/null && exit 7")
	cmd.Stdout = &out
	if err := n.Run(cmd); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 || strings.TrimSpace(out.String()) != "1" {
		t.Errorf("exit status %d, output %q; want 7 and 1", code, out.String())
	}
}

// TestMachineIsLeftAlone: what kubelets write elsewhere goes to the node's directories,
// and their settings of the kernel are not made.
func TestMachineIsLeftAlone(t *testing.T) {
	n := labNode(t)
	for _, path := range []string{"device-plugins/kubelet.sock", "plugins_registry", "pod-resources/kubelet.sock"} {
		if !exists(filepath.Join(n.KubeletDir(), path)) {
			t.Errorf("no %s in %s", path, n.KubeletDir())
		}
	}
	first, err := n.place.First()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/var/lib/kubelet", "/var/log/containers", "/run/containerd"} {
		outside, err := os.Stat(path)
		if err != nil {
			continue // as it should be where there is no other kubelet
		}
		inside, err := os.Stat(filepath.Join("/proc", strconv.Itoa(first), "root", path))
		if err != nil {
			t.Fatal(err)
		}
		if os.SameFile(outside, inside) {
			t.Errorf("%s is the machine's", path)
		}
	}
	if inside := readFile(t, filepath.Join("/proc", strconv.Itoa(first), "root/proc/sys/kernel/panic_on_oops")); inside != "1" {
		t.Errorf("the node sees panic_on_oops %q, want what its kubelet asks for", inside)
	}
	if text := readFile(t, n.Logs()[Kubelet]); strings.Contains(text, "Updating kernel flag") {
		t.Error("the kubelet changes settings of the machine's kernel")
	}
}
