package realnode

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// Name returns the name of the Node object.
func (n *Node) Name() string { return n.name }

// KubeletDir returns the kubelet's root directory as seen from outside, where it is
// /var/lib/kubelet. Sockets in device-plugins, plugins and plugins_registry can be
// made by either name.
func (n *Node) KubeletDir() string { return filepath.Join(n.place.Folder("lib"), "kubelet") }

// PodResourcesSocket returns the kubelet's socket that tells which container has which
// devices.
func (n *Node) PodResourcesSocket() string {
	return filepath.Join(n.KubeletDir(), "pod-resources", "kubelet.sock")
}

// partName is what a component of the node is called on its plane.
func (n *Node) partName(component string) string { return component + "-" + n.name }

func (n *Node) component(name string) *plane.Component {
	return n.options.Plane.Component(n.partName(name))
}

// Kubelet returns the kubelet, to be paused, resumed, stopped and started again.
func (n *Node) Kubelet() *plane.Component { return n.component(Kubelet) }

// Containerd returns containerd, for the same.
func (n *Node) Containerd() *plane.Component { return n.component(Containerd) }

// KubeProxy returns kube-proxy, for the same.
func (n *Node) KubeProxy() *plane.Component { return n.component(KubeProxy) }

// Logs returns the files with what the components of the node wrote, by name. Those
// of containers are the apiserver's to give.
func (n *Node) Logs() map[string]string {
	logs := map[string]string{}
	for _, name := range []string{Keeper, Containerd, Kubelet, KubeProxy} {
		if c := n.component(name); c != nil {
			logs[name] = c.LogPath()
		}
	}
	return logs
}

// Dial connects to a pod, a service or a node, from inside of this one. The address is one of numbers:
// the node has no name server.
func (n *Node) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.inside.dial(ctx, network, address)
}

// Run starts a command among the node's processes, with its network and its /var/lib,
// /var/log and /run. It is the caller's to wait for, as after Start of exec.Cmd, and
// ends with the node. (A command made with exec.CommandContext ends with its context.)
func (n *Node) Run(cmd *exec.Cmd) error { return n.inside.start(cmd) }
