package integration

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// serverWithoutDRA starts another API server for the cluster, one that does not
// serve the API, and returns its host. It never calls itself ready: its authorizer
// of nodes waits for that very API. All else it serves, for as long as the lab
// waits for it to be ready, which is two minutes.
func (e *env) serverWithoutDRA() (host string) {
	e.Helper()
	const name = "kube-apiserver-without-dra"
	ctx, cancel := context.WithCancel(e.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, err := e.plane.AddAPIServer(ctx, name, "--runtime-config=resource.k8s.io/v1=false")
		if err == nil {
			e.Error("an API server without DRA calls itself ready")
		}
	}()
	e.Cleanup(func() { cancel(); <-ended })
	e.eventually(name+" to answer", func() error {
		c := e.plane.Component(name)
		if c == nil {
			return errors.New("not started yet")
		}
		config := e.plane.Config()
		config.Host = c.URL()
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		host = strings.TrimPrefix(c.URL(), "https://")
		_, err = client.CoreV1().Nodes().List(e.Context(), metav1.ListOptions{})
		return err
	})
	return host
}

// detour sends requests to another server than they are meant for.
type detour struct {
	wire
	to atomic.Pointer[string]
}

func (d *detour) through(config *rest.Config, o *run.Options) {
	d.wire.through(config, o)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if to := d.to.Load(); to != nil {
				req = req.Clone(req.Context())
				req.URL.Host = *to
			}
			return next.RoundTrip(req)
		})
	})
}

// endWatches ends every watch. They are taken up again at once.
func (d *detour) endWatches() {
	d.sever()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = false
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
