package plane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// files knows where everything lies in a state directory.
type files struct{ dir string }

func (f files) etcdData() string             { return filepath.Join(f.dir, "etcd") }
func (f files) certs() string                { return filepath.Join(f.dir, "certs") }
func (f files) ca() string                   { return filepath.Join(f.certs(), "ca.crt") }
func (f files) caKey() string                { return filepath.Join(f.certs(), "ca.key") }
func (f files) serverCert() string           { return filepath.Join(f.certs(), "server.crt") }
func (f files) serverKey() string            { return filepath.Join(f.certs(), "server.key") }
func (f files) proxyCert() string            { return filepath.Join(f.certs(), "front-proxy.crt") }
func (f files) proxyKey() string             { return filepath.Join(f.certs(), "front-proxy.key") }
func (f files) serviceAccountKey() string    { return filepath.Join(f.certs(), "sa.key") }
func (f files) serviceAccountPublic() string { return filepath.Join(f.certs(), "sa.pub") }
func (f files) stages() string               { return filepath.Join(f.dir, "stages.yaml") }
func (f files) auditPolicy() string          { return filepath.Join(f.dir, "audit-policy.yaml") }
func (f files) kubeletClientCert() string    { return filepath.Join(f.certs(), "kubelet-client.crt") }
func (f files) kubeletClientKey() string     { return filepath.Join(f.certs(), "kubelet-client.key") }
func (f files) egress() string               { return filepath.Join(f.dir, "egress.yaml") }
func (f files) logs() string                 { return filepath.Join(f.dir, "logs") }
func (f files) log(name string) string       { return filepath.Join(f.logs(), name+".log") }
func (f files) temp() string                 { return filepath.Join(f.dir, "tmp") }
func (f files) adminKubeconfig() string      { return filepath.Join(f.dir, "kubeconfig") }
func (f files) auditLog(name string) string {
	if name == APIServer {
		return filepath.Join(f.dir, "audit.log")
	}
	return filepath.Join(f.dir, "audit-"+name+".log")
}
func (f files) kubeconfig(name string) string {
	return filepath.Join(f.certs(), name+".kubeconfig")
}

// auditPolicy records who did what to which object, without the objects.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// writeStatic writes all that does not depend on a port: certificates, keys,
// stages, audit policy.
func (f files) writeStatic(ca *authority) error {
	for _, dir := range []string{f.certs(), f.logs(), f.temp()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make state directory: %w", err)
		}
	}
	server, err := ca.server()
	if err != nil {
		return err
	}
	proxy, err := ca.client(frontProxy)
	if err != nil {
		return err
	}
	private, public, err := newServiceAccountKey()
	if err != nil {
		return err
	}
	stages, err := stages()
	if err != nil {
		return err
	}
	return errors.Join(
		writeSecret(f.ca(), ca.certPEM),
		writeSecret(f.caKey(), ca.keyPEM),
		writeSecret(f.serverCert(), server.cert),
		writeSecret(f.serverKey(), server.key),
		writeSecret(f.proxyCert(), proxy.cert),
		writeSecret(f.proxyKey(), proxy.key),
		writeSecret(f.serviceAccountKey(), private),
		writeSecret(f.serviceAccountPublic(), public),
		writeSecret(f.stages(), stages),
		writeSecret(f.auditPolicy(), []byte(auditPolicy)),
	)
}
