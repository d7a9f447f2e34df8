package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// statsOf waits until the numbers of a resource are as they should be.
func statsOf(t *testing.T, w *Watch, resource, what string, good func(SourceStats) bool) SourceStats {
	t.Helper()
	var got SourceStats
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, s := range w.Stats() {
			if s.Resource == resource {
				got = s
			}
		}
		if good(got) {
			return got
		}
	}
	t.Fatalf("%s: %s: %+v", resource, what, got)
	return got
}

// TestStats: what comes by is counted where it comes by, and a watch that ends says
// why.
func TestStats(t *testing.T) {
	for _, pages := range []bool{false, true} {
		t.Run(fmt.Sprintf("in pages %v", pages), func(t *testing.T) {
			pods, nodes := clusterOf(3, 2, 4)
			s := newAPIServer(t, pods, nodes, func(s *apiServer) { s.noWatchList = pages })
			w := s.start(&heard{})
			bookmarks := int64(1) // that which ends the initial events
			if pages {
				bookmarks = 0
			}
			first := statsOf(t, w, "pods", "at first", func(s SourceStats) bool {
				return s.HandedOn == 3 && !s.Behind && s.Kept == 3 && s.Synced && s.Bookmarks >= bookmarks && !s.Connected.IsZero()
			})
			if first.Dropped != 2 || first.Decoded != 3 || first.Lists != 1 || first.Bookmarks != bookmarks ||
				first.BytesDropped == 0 || first.BytesHandedOn <= first.BytesDropped || !first.Measured || first.Failure != nil {
				t.Errorf("pods: %+v", first)
			}
			if got := statsOf(t, w, "nodes", "at first", func(s SourceStats) bool { return s.Kept == 4 }); got.HandedOn != 4 || got.Dropped != 0 {
				t.Errorf("nodes: %+v", got)
			}
			if got := statsOf(t, w, "configmaps", "at first", func(s SourceStats) bool { return s.Lists == 1 && !s.Connected.IsZero() }); got.Measured {
				t.Errorf("configmaps: %+v", got)
			}

			send := func(event apiwatch.EventType, pod *corev1.Pod, version string) {
				out := &wire{}
				pod.ResourceVersion = version
				out.send(t, event, pod)
				s.events["pods"] <- out.Bytes()
			}
			send(apiwatch.Bookmark, bookmark("", false), "1000001")
			send(apiwatch.Modified, gpuPod("cpu", "n", 0), "1000002")
			send(apiwatch.Modified, pods[0].(*corev1.Pod).DeepCopy(), "1000003")
			got := statsOf(t, w, "pods", "after events", func(s SourceStats) bool { return s.Version == "1000003" && !s.Behind })
			if got.Bookmarks != bookmarks+1 || got.HandedOn != 4 || got.Dropped != 3 || got.Decoded != 4 || got.Kept != 3 {
				t.Errorf("after events: %+v", got)
			}

			s.CloseClientConnections()
			got = statsOf(t, w, "pods", "after a connection broke", func(s SourceStats) bool { return s.Connected.After(first.Connected) })
			if got.Lists != 1 || got.Ends[EndBroken] != 1 || len(got.Ends) != 1 {
				t.Errorf("after a connection broke: %+v", got)
			}

			out := &wire{}
			out.send(t, apiwatch.Error, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone})
			s.events["pods"] <- out.Bytes()
			got = statsOf(t, w, "pods", "after 410", func(s SourceStats) bool { return s.Lists == 2 && !s.Connected.IsZero() })
			if got.Expired != 1 || got.Ends[EndExpired] != 1 || got.LastExpired.IsZero() || got.LastList.Before(got.LastExpired) {
				t.Errorf("after 410: %+v", got)
			}
		})
	}
}

// TestWhyAWatchEnds, in whatever order it is noticed.
func TestWhyAWatchEnds(t *testing.T) {
	var syntax any
	broken := json.Unmarshal([]byte("{,"), &syntax)
	for err, want := range map[error]End{
		io.EOF: EndClosed, io.ErrUnexpectedEOF: EndBroken, errMalformed: EndMalformed, broken: EndMalformed,
		errors.New("connection reset by peer"): EndBroken,
	} {
		if got := endOf(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	clientMade := apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, string(watchDecoding)).AsObject(io.ErrUnexpectedEOF)
	for _, tc := range []struct {
		name string
		end  func(*connection)
		want End
	}{
		{"we stopped it", func(c *connection) { c.end(EndStopped); c.end(EndBroken) }, EndStopped},
		{"410 as a code", func(c *connection) { c.told(&metav1.Status{Code: http.StatusGone}); c.end(EndStopped) }, EndExpired},
		{"another error", func(c *connection) { c.told(&metav1.Status{Code: 500}); c.end(EndStopped) }, EndRefused},
		{"nothing that is known", func(c *connection) { c.told(&corev1.Pod{}) }, EndRefused},
		{"client-go could not read", func(c *connection) { c.told(clientMade) }, EndBroken},
	} {
		var s stats
		c := s.connect()
		tc.end(c)
		if len(s.ends) != 1 || s.ends[tc.want] != 1 || s.current != nil {
			t.Errorf("%s: %v, open %v; want one %s", tc.name, s.ends, s.current != nil, tc.want)
		}
	}
	var none *connection
	none.end(EndClosed)
	none.told(nil)
}

// TestTheLatestConnectionCounts: one whose end is noticed late does not end the next.
func TestTheLatestConnectionCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stats
		old := s.connect()
		time.Sleep(time.Minute)
		s.connect()
		old.end(EndBroken)
		var out SourceStats
		s.read(&out)
		if !out.Connected.Equal(time.Now()) || out.Ends[EndBroken] != 1 {
			t.Errorf("connected since %v, %v", out.Connected, out.Ends)
		}
	})
}

// TestTypedClientsCount: what a typed client hands on and what its watch says.
func TestTypedClientsCount(t *testing.T) {
	var p position
	var s stats
	inner := apiwatch.NewFake()
	w := p.track(inner, false, &s)
	go func() {
		inner.Add(gpuPod("a", "n", 1))
		inner.Action(apiwatch.Bookmark, bookmark("8", false))
		inner.Error(&metav1.Status{Reason: metav1.StatusReasonExpired})
		inner.Stop()
	}()
	for range w.ResultChan() {
		continue
	}
	var out SourceStats
	s.read(&out)
	if out.HandedOn != 1 || out.Bookmarks != 1 || out.Expired != 1 || out.Ends[EndExpired] != 1 || !out.Connected.IsZero() {
		t.Errorf("%+v", out)
	}
}

// TestBehind: a store lags from when an event is handed on until it holds it.
func TestBehind(t *testing.T) {
	var p position
	if p.ahead("") || p.ahead("5") {
		t.Error("behind before anything was handed on")
	}
	p.pass("10")
	p.see([]byte("12"))
	if !p.ahead("9") || p.ahead("10") {
		t.Errorf("at 9: %v, at 10: %v; want behind at 9", p.ahead("9"), p.ahead("10"))
	}
}

// TestAStreamThatWeStopSaysSo, whatever the connection says then.
func TestAStreamThatWeStopSaysSo(t *testing.T) {
	var s stats
	stream := newStream(podKind(gpus), io.NopCloser(&wire{}), newKnown(), &position{})
	stream.open = s.connect()
	stream.Close()
	if _, _, err := stream.Decode(); !errors.Is(err, io.EOF) {
		t.Errorf("after that it says %v", err)
	}
	if len(s.ends) != 1 || s.ends[EndStopped] != 1 {
		t.Errorf("ended: %v", s.ends)
	}
}
