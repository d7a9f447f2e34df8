package realnode

import (
	"io"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// The components of a node. In Plane.Component the node's name follows, as in
// kubelet-real-node.
const (
	Keeper     = "kubelet-keeper"
	Containerd = "containerd"
	Kubelet    = "kubelet"
	KubeProxy  = "kube-proxy"
)

// DefaultName is the name of a node that is given none. On a plane's second node a
// number follows, as in real-node-2.
const DefaultName = "real-node"

// Options say what Start starts.
type Options struct {
	// Plane is a plane that was started with RealNode.
	Plane *plane.Plane
	// Name is the node's, which no other node of the plane has; "" is DefaultName.
	Name string
	// Binaries are what plane.BuildNode returned; zero means that Start calls it.
	Binaries plane.NodeBinaries
	// KubeletConfig has fields of a KubeletConfiguration, which override the node's own.
	KubeletConfig map[string]any
	// KubeletFlags and KubeProxyFlags are added to the node's own, and override them.
	KubeletFlags, KubeProxyFlags []string
	// Progress gets lines for people; nil is silent.
	Progress io.Writer
}
