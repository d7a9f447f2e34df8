package plane

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// get returns a probe that succeeds when a GET is answered with 200.
func (p *Plane) get(url string) func(context.Context) error {
	return func(ctx context.Context) error { return p.request(ctx, probeTimeout, http.MethodGet, url) }
}

func (p *Plane) request(ctx context.Context, limit time.Duration, method, url string) error {
	client, err := p.httpClient()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, firstFailure(string(body)))
	}
	return nil
}

// httpClient is the admin without connection reuse: each question stands for
// itself, and no idle connection delays a component's shutdown.
func (p *Plane) httpClient() (*http.Client, error) {
	config := restConfig("https://"+loopback, p.ca.certPEM, p.admin)
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}}, nil
}

// firstFailure finds the failed check in an answer of /readyz, which lists
// dozens that succeeded.
func firstFailure(body string) string {
	lines := strings.Split(body, "\n")
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "[-]") }); i >= 0 {
		return lines[i]
	}
	return lines[0]
}
