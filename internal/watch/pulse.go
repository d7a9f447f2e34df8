package watch

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Pulse takes note of when a byte last came on each watch. An API server sends a
// bookmark about every minute, so a watch on which nothing has come for several is
// dead, whatever the connection, the informers or a proxy between say.
type Pulse struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// NewPulse makes one that has heard of nothing.
func NewPulse() *Pulse { return &Pulse{last: make(map[string]time.Time)} }

// Last says for each watched resource, as RBAC names it, when a byte last came.
func (p *Pulse) Last() map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.last)
}

func (p *Pulse) beat(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[resource] = time.Now()
}

// Wrap is for rest.Config.Wrap.
func (p *Pulse) Wrap(next http.RoundTripper) http.RoundTripper { return pulsed{pulse: p, next: next} }

type pulsed struct {
	pulse *Pulse
	next  http.RoundTripper
}

// WrappedRoundTripper is how client-go looks for the transport below.
func (p pulsed) WrappedRoundTripper() http.RoundTripper { return p.next }

func (p pulsed) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK || r.URL.Query().Get("watch") == "" {
		return response, err
	}
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	p.pulse.beat(resource)
	response.Body = beating{ReadCloser: response.Body, resource: resource, pulse: p.pulse}
	return response, nil
}

type beating struct {
	io.ReadCloser
	resource string
	pulse    *Pulse
}

func (b beating) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if n > 0 {
		b.pulse.beat(b.resource)
	}
	return n, err
}
