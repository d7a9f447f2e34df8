package lead_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

func TestClientConfigSharesNothing(t *testing.T) {
	data := &rest.Config{
		Host: "https://server", UserAgent: "controller", QPS: 5, Burst: 10, Timeout: time.Hour,
		RateLimiter: flowcontrol.NewFakeNeverRateLimiter(),
	}
	c := lead.ClientConfig(data, 10*time.Second)
	if c.Timeout != 5*time.Second || c.QPS >= 0 || c.RateLimiter != nil {
		t.Errorf("timeout %v, qps %v, limiter %v", c.Timeout, c.QPS, c.RateLimiter)
	}
	if c.Host != data.Host || !strings.HasPrefix(c.UserAgent, "controller") || c.UserAgent == data.UserAgent {
		t.Errorf("host %q, user agent %q", c.Host, c.UserAgent)
	}
	if data.Timeout != time.Hour || data.RateLimiter == nil || data.NextProtos != nil {
		t.Errorf("the configuration it was made from has changed: %+v", data)
	}
}

// TestADeadConnectionCostsOneTimeout: the connection that the lease's requests use
// goes dead without a word, as it does when a load balancer forgets it. The next
// request times out, and the one after it is answered. It is not with a client as
// others make it, with the same timeout.
func TestADeadConnectionCostsOneTimeout(t *testing.T) {
	const renewDeadline = 4 * time.Second
	for what, test := range map[string]struct {
		config   func(*rest.Config) *rest.Config
		answered [3]bool
	}{
		"ClientConfig": {
			func(c *rest.Config) *rest.Config { return lead.ClientConfig(c, renewDeadline) },
			[3]bool{true, false, true},
		},
		"only a timeout": {
			func(c *rest.Config) *rest.Config { c.Timeout = renewDeadline / 2; return c },
			[3]bool{true, false, false},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := startRelay(t)
			client, err := kubernetes.NewForConfig(test.config(&rest.Config{
				Host: "https://" + r.Addr().String(), TLSClientConfig: rest.TLSClientConfig{Insecure: true},
			}))
			if err != nil {
				t.Fatal(err)
			}
			for i, answered := range test.answered {
				_, err := client.CoordinationV1().Leases(namespace).Get(t.Context(), name, metav1.GetOptions{})
				if (err == nil) != answered {
					t.Errorf("request %d: %v, want it answered: %v", i+1, err, answered)
				}
				r.deaf.Store(1) // from the first answer on
			}
		})
	}
}

// relay passes bytes to a server and back, but for connections that are deaf.
type relay struct {
	net.Listener
	target   string
	accepted atomic.Int32
	deaf     atomic.Int32 // the first so many connections
}

func startRelay(t *testing.T) *relay {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"gpu-summary"}}`)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: listener, target: server.Listener.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() { r.serve(&wg) })
	t.Cleanup(func() {
		server.CloseClientConnections()
		_ = listener.Close()
		wg.Wait()
	})
	return r
}

func (r *relay) serve(wg *sync.WaitGroup) {
	for {
		near, err := r.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = near.Close()
			return
		}
		n := r.accepted.Add(1)
		wg.Go(func() { r.copy(near, far, n) })
		wg.Go(func() { r.copy(far, near, n) })
	}
}

func (r *relay) copy(to, from net.Conn, n int32) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		length, err := from.Read(buffer)
		if err != nil {
			return
		}
		if n > r.deaf.Load() {
			_, _ = to.Write(buffer[:length])
		}
	}
}
