package watch

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// End is why a watch has ended.
type End string

// The reasons. Only the first and the last are usual.
const (
	EndClosed    End = "closed"    // by the server, as after every few minutes
	EndBroken    End = "broken"    // the connection
	EndExpired   End = "expired"   // the server no longer has the version that was asked for (410)
	EndRefused   End = "refused"   // the server sent another error
	EndMalformed End = "malformed" // what came cannot be taken apart
	EndStopped   End = "stopped"   // by us
)

// Ends lists them in the order in which they are shown.
var Ends = []End{EndClosed, EndBroken, EndExpired, EndRefused, EndMalformed, EndStopped}

// connection is one open watch. Nil works, and is none.
type connection struct {
	stats *stats
	since time.Time
	ended bool // with the mutex of stats
}

// connect notes that a watch has been opened.
func (s *stats) connect() *connection {
	c := &connection{stats: s, since: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = c
	return c
}

// end notes why it has ended. What is said first is why: everything else follows from
// it.
func (c *connection) end(why End) {
	if c == nil {
		return
	}
	s := c.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	if s.ends == nil {
		s.ends = make(map[End]int64)
	}
	s.ends[why]++
	if s.current == c {
		s.current = nil
	}
}

// endOf is why a stream that met this error has ended.
func endOf(err error) End {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return EndClosed
	case errors.Is(err, errMalformed), errors.As(err, &syntax):
		return EndMalformed
	}
	return EndBroken
}

// told notes what the server itself says is wrong, in an event of the type error.
func (c *connection) told(object runtime.Object) {
	if c == nil {
		return
	}
	status, ok := object.(*metav1.Status)
	switch {
	case ok && (status.Reason == metav1.StatusReasonExpired || status.Code == http.StatusGone):
		c.stats.expired.Add(1)
		c.stats.lastExpired.now()
		c.end(EndExpired)
	case ok && status.Reason == metav1.StatusReasonInternalError && clientMade(status):
		c.end(EndBroken)
	default:
		c.end(EndRefused)
	}
}

// clientMade reports whether a status was made on this side, by client-go, of bytes
// that it could not read.
func clientMade(status *metav1.Status) bool {
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Type == watchDecoding {
				return true
			}
		}
	}
	return false
}

// watchDecoding is how client-go marks them.
const watchDecoding metav1.CauseType = "ClientWatchDecoding"
