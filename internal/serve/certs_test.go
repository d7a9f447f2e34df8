package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestASelfMadeCertificate is good for the names of this machine, and for a server
// alone. Two of them have nothing in common.
func TestASelfMadeCertificate(t *testing.T) {
	c, err := SelfMadeCertificate()
	if err != nil {
		t.Fatal(err)
	}
	leaf := c.get(quiet()).Leaf
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1", host} {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if ip := address.(*net.IPNet).IP; ip.IsGlobalUnicast() && leaf.VerifyHostname(ip.String()) != nil {
			t.Errorf("not for the address %s", ip)
		}
	}
	if leaf.IsCA || leaf.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Error("it can vouch for others")
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("it is good for a client")
	}
	if other, err := SelfMadeCertificate(); err != nil || other.get(quiet()).Leaf.PublicKey.(*ecdsa.PublicKey).Equal(leaf.PublicKey) ||
		other.get(quiet()).Leaf.SerialNumber.Cmp(leaf.SerialNumber) == 0 {
		t.Errorf("the next one is the same (%v)", err)
	}
}

// TestASelfMadeCertificateNeverEnds: in three years no reader sees one that is not
// valid, and they are made only once in a while.
func TestASelfMadeCertificateNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := SelfMadeCertificate()
		if err != nil {
			t.Fatal(err)
		}
		made := map[string]bool{}
		for range 3 * 365 {
			leaf := c.get(quiet()).Leaf
			made[leaf.SerialNumber.String()] = true
			if left := time.Until(leaf.NotAfter); left <= renewBefore || time.Since(leaf.NotBefore) < backdate {
				t.Fatalf("valid from %v to %v at %v", leaf.NotBefore, leaf.NotAfter, time.Now())
			}
			time.Sleep(24 * time.Hour)
		}
		if len(made) != 4 {
			t.Errorf("%d certificates in three years", len(made))
		}
	})
}

// pemPair is a certificate and its key as they are in files.
func pemPair(t *testing.T) (cert, key []byte) {
	t.Helper()
	pair, err := selfMade(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// secret is a folder as the kubelet mounts a Secret: the files are links into a
// folder that is a link too, and that one link is exchanged.
type secret struct {
	*testing.T
	dir   string
	cert  string
	key   string
	moves int
}

func newSecret(t *testing.T) *secret {
	s := &secret{T: t, dir: t.TempDir()}
	s.cert, s.key = filepath.Join(s.dir, "tls.crt"), filepath.Join(s.dir, "tls.key")
	for _, path := range []string{s.cert, s.key} {
		s.must(os.Symlink(filepath.Join("..data", filepath.Base(path)), path))
	}
	return s
}

func (s *secret) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// put exchanges the contents; nil leaves a file out.
func (s *secret) put(cert, key []byte) {
	s.Helper()
	s.moves++
	data := filepath.Join(s.dir, "..v"+strings.Repeat("x", s.moves))
	s.must(os.Mkdir(data, 0o700))
	for path, content := range map[string][]byte{s.cert: cert, s.key: key} {
		if content != nil {
			s.must(os.WriteFile(filepath.Join(data, filepath.Base(path)), content, 0o600))
		}
	}
	next := filepath.Join(s.dir, "..next")
	s.must(os.Symlink(filepath.Base(data), next))
	s.must(os.Rename(next, filepath.Join(s.dir, "..data")))
}

// TestAGivenCertificateIsReadAgain when it changes; what cannot be used is said once,
// and the old one kept.
func TestAGivenCertificateIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		certA, keyA := pemPair(t)
		certB, keyB := pemPair(t)
		s := newSecret(t)
		s.put(certA, keyA)
		c, err := GivenCertificate(s.cert, s.key)
		if err != nil {
			t.Fatal(err)
		}
		ctx, log := logged(t, 0)
		shows := func(want []byte) {
			t.Helper()
			time.Sleep(lookEvery)
			for range 3 {
				if got := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.get(ctx).Certificate[0]}); string(got) != string(want) {
					t.Error("another certificate is served")
				}
				time.Sleep(lookEvery)
			}
		}
		shows(certA)
		s.put(certB, keyB)
		shows(certB)
		says(1, "Loaded a new certificate", log(), t)
		for i, broken := range [][2][]byte{{certA, keyB}, {certA, []byte("nonsense")}, {certA, nil}, {nil, keyA}, {nil, nil}} {
			s.put(broken[0], broken[1])
			shows(certB)
			// The last two lack the same file, so that nothing has changed.
			says(min(i+1, 4), "Keeping the old certificate", log(), t)
		}
		s.put(certA, keyA)
		shows(certA)
		s.put(certB, keyB)
		s.put(certA, keyA) // nobody has looked in between
		shows(certA)
		says(2, "Loaded a new certificate", log(), t)
		if strings.Contains(log(), "PRIVATE") {
			t.Error("a key is in the log")
		}
	})
}

// TestAnExchangeBetweenTwoReads is no broken pair.
func TestAnExchangeBetweenTwoReads(t *testing.T) {
	certA, keyA := pemPair(t)
	certB, keyB := pemPair(t)
	s := newSecret(t)
	s.put(certA, keyA)
	exchanged := false
	f := &pairOfFiles{cert: s.cert, key: s.key, readFile: func(path string) ([]byte, error) {
		if path == s.key && !exchanged {
			exchanged = true
			s.put(certB, keyB)
		}
		return os.ReadFile(path)
	}}
	pair, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	if got := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}); string(got) != string(certB) {
		t.Error("not the new certificate")
	}
}

// TestAGivenCertificateThatCannotBeUsed is named with the flags, before anything is
// served.
func TestAGivenCertificateThatCannotBeUsed(t *testing.T) {
	cert, key := pemPair(t)
	for name, files := range map[string][2][]byte{"no key": {cert, nil}, "no certificate": {nil, key}, "nonsense": {cert, []byte("x")}} {
		s := newSecret(t)
		s.put(files[0], files[1])
		_, err := GivenCertificate(s.cert, s.key)
		if err == nil || !strings.Contains(err.Error(), "--tls-cert-file") || !strings.Contains(err.Error(), "--tls-private-key-file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestANewCertificateIsServed without a restart, and browsers are told to insist on
// one that was given.
func TestANewCertificateIsServed(t *testing.T) {
	certA, keyA := pemPair(t)
	certB, keyB := pemPair(t)
	s := newSecret(t)
	s.put(certA, keyA)
	c, err := GivenCertificate(s.cert, s.key)
	if err != nil {
		t.Fatal(err)
	}
	server, err := Listen(Options{Address: "127.0.0.1:0", TLS: c})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(quiet())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	// trusts gets the headers of an answer, or nil.
	trusts := func(cert []byte) http.Header {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(cert)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
		res, err := client.Get(server.URL() + livez)
		if err != nil {
			return nil
		}
		_ = res.Body.Close()
		return res.Header
	}
	if head := trusts(certA); head.Get("Strict-Transport-Security") != "max-age=31536000" {
		t.Fatalf("with the first certificate: %v", head)
	}
	s.put(certB, keyB)
	given, tick := time.After(time.Minute), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for trusts(certB) == nil {
		select {
		case <-tick.C:
		case <-given:
			t.Fatal("the new certificate is not served")
		}
	}
	if trusts(certA) != nil {
		t.Error("the old certificate is still served")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
