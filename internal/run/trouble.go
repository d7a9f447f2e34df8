package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// trouble takes note of watches that fail. Informers begin them again for ever and
// call themselves synced meanwhile.
type trouble struct {
	mu    sync.Mutex
	fails map[string]failure
}

// failure is since when lists or watches of a resource fail, and why, in words that
// stay the same for as long as they do: no port and no time is in them.
type failure struct {
	since time.Time
	why   string
}

func newTrouble() *trouble { return &trouble{fails: make(map[string]failure)} }

// failing has the resources of which no watch has been accepted since one failed.
func (t *trouble) failing() map[string]failure {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.fails)
}

// Wrap is for rest.Config.Wrap.
func (t *trouble) Wrap(next http.RoundTripper) http.RoundTripper { return noticing{t, next} }

type noticing struct {
	trouble *trouble
	next    http.RoundTripper
}

// WrappedRoundTripper is how client-go looks for the transport below.
func (n noticing) WrappedRoundTripper() http.RoundTripper { return n.next }

func (n noticing) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(r)
	if r.Method == http.MethodGet && !errors.Is(err, context.Canceled) {
		n.trouble.note(r, response, err)
	}
	return response, err
}

// note judges by what came of a list or a watch. Only a watch that is accepted makes
// good: with the right to list alone each list would.
func (t *trouble) note(r *http.Request, response *http.Response, err error) {
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	t.mu.Lock()
	defer t.mu.Unlock()
	why := "the API server does not answer"
	switch {
	case err == nil && response.StatusCode < http.StatusBadRequest:
		if r.URL.Query().Get("watch") != "" {
			delete(t.fails, resource)
		}
		return
	case err == nil:
		why = fmt.Sprintf("the API server says %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	since := time.Now()
	if before, ok := t.fails[resource]; ok {
		since = before.since
	}
	t.fails[resource] = failure{since, why}
}
