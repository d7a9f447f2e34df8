package plane

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// adminGroup bypasses RBAC and the server's priority and fairness.
const adminGroup = "system:masters"

// restConfig is a client of the server at url as the holder of the pair.
func restConfig(url string, ca []byte, p pair) *rest.Config {
	return &rest.Config{
		Host: url,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   ca,
			CertData: p.cert,
			KeyData:  p.key,
		},
		// The client's own throttle (5 requests a second by default) would make
		// loading a cluster take an hour; the server defends itself.
		QPS: -1,
	}
}

// writeKubeconfig writes a file that needs no other file beside it, so that it
// can be copied anywhere.
func writeKubeconfig(path, user string, c *rest.Config) error {
	const name = "gpu-summary-lab"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig of %s: %w", user, err)
	}
	return writeSecret(path, data)
}
