package serve

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// TestACrowdOfReadersIsRefused, and keeps nobody from the probes. Who is not let in
// takes no room.
func TestACrowdOfReadersIsRefused(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	g := &gate{room: make(chan struct{}, maxRequests), next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- struct{}{}
			<-release
		}
	})}
	status := func(path string) int {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	var wg sync.WaitGroup
	for range maxRequests {
		wg.Go(func() {
			if got := status("/slow"); got != 200 {
				t.Errorf("one that was let in: %d", got)
			}
		})
		<-entered
	}
	for path, want := range map[string]int{"/other": 503, livez: 200, readyz: 200} {
		if got := status(path); got != want {
			t.Errorf("%s in a crowd: %d, want %d", path, got, want)
		}
	}
	close(release)
	wg.Wait()
	if got := status("/other"); got != 200 {
		t.Errorf("after the crowd: %d", got)
	}
}
