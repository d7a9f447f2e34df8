package realnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

const (
	// bridgeDevice is what CNI connects pods to; its address is the node's.
	bridgeDevice = "cni0"
	// podNetwork has a part for each node.
	podNetwork = "10.88.0.0/16"
	pauseImage = "docker.io/local/pause:1"

	containerdSocket = "/run/containerd/containerd.sock"
	kubeletHealth    = "127.0.0.1:10248"
	kubeProxyHealth  = "127.0.0.1:10256"
	kubeletPort      = "10250"

	// filesInside is where the node sees its configuration.
	filesInside = "/var/lib/node"
)

// containerdConfig keeps to the node's own directories. Images have no registry to come
// from. The snapshotter that copies works on any file system, overlays included, and the
// images are small.
const containerdConfig = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = "` + containerdSocket + `"

[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  # A container's score below ours takes a capability that not every root has.
  restrict_oom_score_adj = true
  # Not in /run/netns, which other programs look through.
  netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "` + snapshotter + `"

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = %q
  conf_dir = "` + filesInside + `/cni"
`

const cniConfig = `{
  "cniVersion": "0.4.0",
  "name": "pods",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "` + bridgeDevice + `",
      "isGateway": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni",
        "ranges": [[{"subnet": %q, "gateway": %q}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// kubeletConfig is a KubeletConfiguration: as kubeadm has it where that matters, and
// otherwise content with a small and busy machine.
func kubeletConfig(f plane.NodeFiles, group, address string, more map[string]any) ([]byte, error) {
	config := map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"address":                  address,
		"tlsCertFile":              f.Cert,
		"tlsPrivateKeyFile":        f.Key,
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"volumePluginDir":          "/var/lib/kubelet/volume-plugins",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": f.CA},
		},
		// Whatever hierarchy the machine has, and nothing outside of the node's group.
		"cgroupDriver":           "cgroupfs",
		"cgroupRoot":             "/" + group,
		"failCgroupV1":           false,
		"enforceNodeAllocatable": []string{},
		// There is no name server to lead pods to.
		"resolvConf": "",
		// The disk is the machine's. No pod has to go because it is nearly full, and no
		// image, which could not be pulled again.
		"evictionHard":                map[string]any{"memory.available": "50Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%", "imagefs.available": "1%"},
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
		"oomScoreAdj":                 0,
	}
	maps.Copy(config, more)
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the kubelet's configuration: %w", err)
	}
	return text, nil
}

func (n *Node) kubeletArgs() []string {
	return append([]string{
		"kubelet",
		"--config=" + filepath.Join(filesInside, "kubelet.json"),
		"--kubeconfig=" + n.files.Kubelet,
		"--hostname-override=" + n.name,
		"--node-ip=" + n.address.String(),
		"--node-labels=" + plane.RealNodeLabel + "=true",
		"--root-dir=/var/lib/kubelet",
		"--v=2",
	}, n.options.KubeletFlags...)
}

func (n *Node) kubeProxyArgs() []string {
	return append([]string{
		"kube-proxy",
		"--kubeconfig=" + n.files.KubeProxy,
		"--hostname-override=" + n.name,
		"--proxy-mode=iptables",
		"--cluster-cidr=" + podNetwork,
		"--healthz-bind-address=" + kubeProxyHealth,
		"--oom-score-adj=0",
		// The table of connections is the whole machine's: it is left as it is.
		"--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0s",
		"--conntrack-tcp-timeout-close-wait=0s",
	}, n.options.KubeProxyFlags...)
}

// writeFiles writes all configuration to where the node will see it.
func (n *Node) writeFiles(pluginDir string) error {
	dir := filepath.Join(n.place.Folder("lib"), filepath.Base(filesInside))
	for _, made := range []string{filepath.Join(dir, "cni"), n.KubeletDir(), filepath.Join(n.place.Folder("run"), "tmp")} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			return fmt.Errorf("make the node's directories: %w", err)
		}
	}
	var err error
	if n.files, err = n.options.Plane.WriteNodeFiles(dir, filesInside, n.name, n.address.String()); err != nil {
		return err
	}
	kubelet, err := kubeletConfig(n.files, n.place.ID, n.address.String(), n.options.KubeletConfig)
	if err != nil {
		return err
	}
	write := func(name, text string) error {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the node's configuration: %w", err)
		}
		return nil
	}
	return errors.Join(
		write("kubelet.json", string(kubelet)),
		write("containerd.toml", fmt.Sprintf(containerdConfig, pluginDir)),
		write(filepath.Join("cni", "pods.conflist"), fmt.Sprintf(cniConfig, n.pods, n.address)),
	)
}
