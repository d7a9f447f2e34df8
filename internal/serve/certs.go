package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// lookEvery is how often handshakes look whether the files have changed.
	lookEvery = time.Second

	selfMadeFor = 365 * 24 * time.Hour
	renewBefore = 30 * 24 * time.Hour
	// backdate is for readers whose clocks are behind.
	backdate = time.Hour
)

// Certificates is where the certificate for a handshake comes from. It is looked
// after in passing, at handshakes, and needs no goroutine: whoever is never talked to
// may have an old one.
type Certificates struct {
	given bool // by somebody who answers for it

	mu      sync.Mutex
	current *tls.Certificate
	renew   func(ctx context.Context, current *tls.Certificate) *tls.Certificate
}

func (c *Certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(hello.Context()), nil },
	}
}

func (c *Certificates) get(ctx context.Context) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = c.renew(ctx, c.current)
	return c.current
}

// GivenCertificate reads a certificate and its key from files, and reads them again
// when they change. A pair that cannot be used does not replace one that can. Whether
// it has expired is for the readers to judge, who may know better what time it is.
func GivenCertificate(certFile, keyFile string) (*Certificates, error) {
	f := &pairOfFiles{cert: certFile, key: keyFile, readFile: os.ReadFile, looked: time.Now()}
	current, err := f.load()
	if err != nil {
		return nil, fmt.Errorf("load --tls-cert-file and --tls-private-key-file: %w", err)
	}
	return &Certificates{given: true, current: current, renew: f.renew}, nil
}

type pairOfFiles struct {
	cert, key string
	readFile  func(string) ([]byte, error)
	looked    time.Time
	// seen stands for what was found last, usable or not, so that each is read and
	// talked about once.
	seen string
}

func (f *pairOfFiles) renew(ctx context.Context, current *tls.Certificate) *tls.Certificate {
	if time.Since(f.looked) < lookEvery {
		return current
	}
	f.looked = time.Now()
	before := f.seen
	changed, err := f.load()
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "certificate", f.cert, "key", f.key)
	switch {
	case f.seen == before:
		return current
	case err != nil:
		logger.Error(err, "Keeping the old certificate, for the new one cannot be used")
		return current
	}
	logger.Info("Loaded a new certificate", "expires", changed.Leaf.NotAfter)
	return changed
}

// load reads the pair. The files of a mounted Secret are exchanged at one moment, and
// that may lie between the two reads; a second try then finds both of the new ones.
func (f *pairOfFiles) load() (pair *tls.Certificate, err error) {
	for range 2 {
		if pair, err = f.read(); err == nil {
			break
		}
	}
	return pair, err
}

func (f *pairOfFiles) read() (*tls.Certificate, error) {
	cert, err := f.readFile(f.cert)
	if err != nil {
		f.seen = err.Error()
		return nil, err
	}
	key, err := f.readFile(f.key)
	if err != nil {
		f.seen = err.Error()
		return nil, err
	}
	f.seen = fmt.Sprintf("%x %x", sha256.Sum256(cert), sha256.Sum256(key))
	pair, err := tls.X509KeyPair(cert, key)
	return &pair, err
}

// SelfMadeCertificate makes a certificate that nobody vouches for, with the names and
// addresses this machine has. The key is in memory only. What it gives is secrecy
// from those who listen; who can put themselves in between needs a given one.
func SelfMadeCertificate() (*Certificates, error) {
	current, err := selfMade(time.Now())
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &Certificates{current: current, renew: renewSelfMade}, nil
}

func renewSelfMade(ctx context.Context, current *tls.Certificate) *tls.Certificate {
	now := time.Now()
	if now.Before(current.Leaf.NotAfter.Add(-renewBefore)) {
		return current
	}
	renewed, err := selfMade(now)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Keeping the old certificate, for no new one could be made")
		return current
	}
	return renewed
}

func selfMade(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	names, addresses := ownNames()
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "gpu-summary-controller"},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(selfMadeFor),
		DNSNames:              names,
		IPAddresses:           addresses,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// ownNames are those under which this machine, or pod, can be reached.
func ownNames() (names []string, addresses []net.IP) {
	names = []string{"localhost"}
	if host, err := os.Hostname(); err == nil && host != "localhost" && visible(host) {
		names = append(names, host)
	}
	addresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	own, _ := net.InterfaceAddrs() // without them there is one name less
	for _, address := range own {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
			addresses = append(addresses, ip.IP)
		}
	}
	return names, addresses
}
