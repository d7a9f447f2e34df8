package plane

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// What plane and real node agree on.
const (
	// NodeServerAddress is where real nodes and their pods find the apiserver, at its
	// usual port. Each node has the address, in a network namespace of its own.
	NodeServerAddress = "10.87.0.1"
	// RealNodeLabel is on nodes that have a kubelet.
	RealNodeLabel = "lab.gpu-summary/real-node"

	// egressSocket is where the apiserver asks for connections to kubelets, pods
	// and webhooks. It runs in the state directory, so that the name is short
	// however long the directory's is.
	egressSocket = "egress.sock"
)

// EgressSocket is the Unix socket on which package realnode serves HTTP CONNECT to
// the networks of the real nodes.
func (p *Plane) EgressSocket() string { return filepath.Join(p.files.dir, egressSocket) }

// egressConfig sends what is meant for the cluster's network there; nothing else
// leads from this machine's network to those of the nodes.
const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: ` + egressSocket + `
`

// apiserverNodeFlags override what a plane without kubelets is content with.
func apiserverNodeFlags(f files, name string) []string {
	flags := []string{
		"--advertise-address=" + NodeServerAddress,
		"--egress-selector-config-file=" + f.egress(),
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + f.kubeletClientCert(),
		"--kubelet-client-key=" + f.kubeletClientKey(),
		"--kubelet-certificate-authority=" + f.ca(),
		"--enable-admission-plugins=NodeRestriction",
	}
	// Nodes lead to the first server only.
	if name == APIServer {
		flags = append(flags, "--endpoint-reconciler-type=lease")
	}
	return flags
}

func (f files) writeForNode(ca *authority) error {
	pair, err := ca.client("kube-apiserver-kubelet-client", adminGroup)
	if err != nil {
		return err
	}
	return errors.Join(
		writeSecret(f.kubeletClientCert(), pair.cert),
		writeSecret(f.kubeletClientKey(), pair.key),
		writeSecret(f.egress(), []byte(egressConfig)),
	)
}

// node signs a certificate for the servers of a node.
func (a *authority) node(name, address string) (pair, error) {
	return a.sign(pkix.Name{CommonName: "system:node:" + name}, func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		c.IPAddresses = []net.IP{net.ParseIP(address)}
		c.DNSNames = []string{name}
	})
}

// NodeFiles are the certificates and kubeconfigs of a node.
type NodeFiles struct {
	CA, Cert, Key      string
	Kubelet, KubeProxy string // kubeconfigs
	APIServer          string // where the node reaches it, as host:port
}

// WriteNodeFiles writes what the node of that name and address needs into a directory,
// and returns the files as the node sees them, which knows the directory by another name.
func (p *Plane) WriteNodeFiles(dir, seen, name, address string) (NodeFiles, error) {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.config.Host, "https://"))
	if err != nil {
		return NodeFiles{}, fmt.Errorf("find the apiserver's port: %w", err)
	}
	serving, err := p.ca.node(name, address)
	if err != nil {
		return NodeFiles{}, err
	}
	apiserver := net.JoinHostPort(NodeServerAddress, port)
	config := func(file, user string, groups ...string) error {
		pair, err := p.ca.client(user, groups...)
		if err != nil {
			return err
		}
		return writeKubeconfig(filepath.Join(dir, file), user, restConfig("https://"+apiserver, p.ca.certPEM, pair))
	}
	secret := func(file string, data []byte) error { return writeSecret(filepath.Join(dir, file), data) }
	in := func(file string) string { return filepath.Join(seen, file) }
	return NodeFiles{
			CA: in("ca.crt"), Cert: in("kubelet.crt"), Key: in("kubelet.key"),
			Kubelet: in("kubelet.kubeconfig"), KubeProxy: in("kube-proxy.kubeconfig"),
			APIServer: apiserver,
		}, errors.Join(
			secret("ca.crt", p.ca.certPEM),
			secret("kubelet.crt", serving.cert),
			secret("kubelet.key", serving.key),
			config("kubelet.kubeconfig", "system:node:"+name, "system:nodes"),
			config("kube-proxy.kubeconfig", "system:kube-proxy"),
		)
}

// Part is a process that another package adds to a plane.
type Part struct {
	Name  string
	Path  string
	Args  []string
	Env   []string // besides what all components get
	URL   string   // where it serves, for people; may be empty
	Probe func(context.Context) error
	// Start starts the process; nil starts it as the plane's own.
	Start func(*exec.Cmd) error
}

// Add starts a part and waits until it is ready. From then on it is one of the
// plane's components: watched (Failed), and stopped before those it was added to.
func (p *Plane) Add(ctx context.Context, part Part) (*Component, error) {
	if p.Component(part.Name) != nil {
		return nil, fmt.Errorf("add %s: there is a component of that name", part.Name)
	}
	c := p.newComponent(part.Name, part.Name, part.URL, nil)
	c.path, c.args, c.probe = part.Path, part.Args, part.Probe
	if part.Start != nil {
		// Elsewhere: the plane's directory need not be there.
		c.spawn, c.dir, c.env = part.Start, "/", []string{"PATH=" + os.Getenv("PATH")}
	}
	c.env = append(c.env, part.Env...)
	if err := p.add(ctx, part.Name, func() (*Component, error) { return c, nil }); err != nil {
		return nil, errors.Join(err, p.Remove(ctx, part.Name))
	}
	return c, nil
}

// Remove stops a component that was added, and forgets it.
func (p *Plane) Remove(ctx context.Context, name string) error {
	c := p.Component(name)
	if c == nil {
		return nil
	}
	err := c.Stop(ctx)
	p.forget(c)
	return err
}
