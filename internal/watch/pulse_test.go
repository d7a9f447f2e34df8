package watch

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPulse: every byte of a watch is heard, and nothing else.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPulse()
		status := http.StatusOK
		client := p.Wrap(roundTrip(func(*http.Request) (*http.Response, error) {
			if status == 0 {
				return nil, errors.New("refused")
			}
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("ab"))}, nil
		}))
		ask := func(path string) io.ReadCloser {
			response, err := client.RoundTrip(httptest.NewRequest(http.MethodGet, path, nil))
			if err != nil {
				return http.NoBody
			}
			return response.Body
		}
		_ = ask("/api/v1/pods?limit=500").Close()
		status = http.StatusForbidden
		_ = ask("/api/v1/nodes?watch=true").Close()
		status = 0
		_ = ask("/api/v1/nodes?watch=true").Close()
		if last := p.Last(); len(last) != 0 {
			t.Errorf("heard of %v", last)
		}
		status = http.StatusOK
		body := ask("/api/v1/namespaces/ns/configmaps?watch=true")
		start := time.Now()
		if at := p.Last()["configmaps"]; !at.Equal(start) {
			t.Errorf("the watch was accepted at %v, heard of at %v", start, at)
		}
		time.Sleep(time.Minute)
		_, _ = body.Read(make([]byte, 1))
		time.Sleep(time.Minute)
		if at := p.Last()["configmaps"]; at.Sub(start) != time.Minute {
			t.Errorf("the last byte came after %v, want 1m", at.Sub(start))
		}
	})
}
