package plane

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCertificatesAreSignedForTheirUse(t *testing.T) {
	ca, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.server()
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.client("someone", "g1", "g2")
	if err != nil {
		t.Fatal(err)
	}
	other, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"127.0.0.1", "localhost", "10.0.0.1", NodeServerAddress, "kubernetes.default.svc"} {
		if err := verify(t, ca, server, name, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("server certificate for %s: %v", name, err)
		}
	}
	if err := verify(t, ca, client, "", x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("client certificate: %v", err)
	}
	if verify(t, ca, client, "", x509.ExtKeyUsageServerAuth) == nil {
		t.Error("a client certificate is good for a server")
	}
	if verify(t, ca, server, "", x509.ExtKeyUsageClientAuth) == nil {
		t.Error("the server's certificate is good for a client")
	}
	if verify(t, other, client, "", x509.ExtKeyUsageClientAuth) == nil {
		t.Error("a certificate is trusted by another lab's authority")
	}

	subject := leaf(t, client).Subject
	if subject.CommonName != "someone" {
		t.Errorf("user %q, want someone", subject.CommonName)
	}
	if diff := cmp.Diff([]string{"g1", "g2"}, subject.Organization); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func verify(t *testing.T, ca *authority, p pair, name string, usage x509.ExtKeyUsage) error {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.certPEM) {
		t.Fatal("CA certificate is not PEM")
	}
	_, err := leaf(t, p).Verify(x509.VerifyOptions{Roots: roots, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

func leaf(t *testing.T, p pair) *x509.Certificate {
	t.Helper()
	// Fails as well when key and certificate do not belong together.
	loaded, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Leaf
}
