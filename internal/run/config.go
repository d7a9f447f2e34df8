// Package run wires the stages together. It is the only package that imports all
// the others.
package run

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gpu-summary/gpu-summary-controller/internal/version"
)

// protobuf is half the size of JSON and a third of the work to decode.
const protobuf = "application/vnd.kubernetes.protobuf"

// cluster says which API server to talk to, and the namespace that goes with it.
type cluster struct {
	config    *rest.Config
	namespace string
	inside    bool // whether this process is a pod of it
}

// source says where it was found, for the log.
func (c *cluster) source() string {
	if c.inside {
		return "in-cluster"
	}
	return "kubeconfig"
}

// findCluster looks where a user expects: what the flags name; else the cluster
// this process is a pod of; else KUBECONFIG and ~/.kube/config.
func findCluster(o *Options) (*cluster, error) {
	if o.Kubeconfig == "" && o.Context == "" {
		config, err := rest.InClusterConfig()
		if err == nil {
			return &cluster{config: config, namespace: podNamespace(), inside: true}, nil
		}
		if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("read in-cluster configuration: %w", err)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster found: not in a pod, and neither --kubeconfig, KUBECONFIG nor ~/.kube/config names one")
	}
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	return &cluster{config: config, namespace: namespace}, nil
}

// podNamespace is where this pod runs.
func podNamespace() string {
	if ns := os.Getenv("POD_NAMESPACE"); ns != "" {
		return ns
	}
	if ns, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil && len(ns) > 0 {
		return string(ns)
	}
	return "default"
}

// tune prepares a configuration for this controller's traffic.
func tune(config *rest.Config, o *Options) *rest.Config {
	c := rest.CopyConfig(config)
	c.ContentType = protobuf
	c.AcceptContentTypes = protobuf + ",application/json"
	c.QPS, c.Burst = o.QPS, o.Burst
	c.DisableCompression = !o.Compression
	c.UserAgent = "gpu-summary-controller/" + version.String()
	return c
}
