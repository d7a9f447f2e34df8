package server

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Count is what was asked of one resource with one verb.
type Count struct {
	Requests int64 `json:"requests"`
	// BytesIn and BytesOut are bodies, as they went over the wire.
	BytesIn  int64 `json:"bytesIn"`
	BytesOut int64 `json:"bytesOut"`
	// Failed requests were answered with 400 or more.
	Failed int64 `json:"failed"`
}

// Write is a write of a ConfigMap.
type Write struct {
	At    time.Time `json:"at"`
	Name  string    `json:"name"`
	Verb  string    `json:"verb"`
	Bytes int64     `json:"bytes"`
	// Refused is why it was not done.
	Refused string `json:"refused,omitempty"`
}

// State is what the server knows of its clients, and of itself.
type State struct {
	// Counts are by resource and verb, "configmaps update".
	Counts map[string]Count `json:"counts"`
	Writes []Write          `json:"writes"`
	// SentState is when all that there is of a resource had been sent to a client for the first time.
	SentState map[string]time.Time `json:"sentState"`
	// Right is when the summary was first what it has to be, zero before.
	Right time.Time `json:"right,omitzero"`
	// RightNow is whether it is now.
	RightNow  bool      `json:"rightNow"`
	Published Published `json:"published"`
	Expected  Expected  `json:"expected"`
	// WireIn and WireOut are the bytes of all connections of clients, with TLS and
	// headers.
	WireIn  int64 `json:"wireIn"`
	WireOut int64 `json:"wireOut"`
	// Version is the present resourceVersion.
	Version uint64 `json:"version"`
}

// counts counts what clients do. The harness has a listener of its own, and
// is not counted.
type counts struct {
	summary  string
	expected func() Expected

	wireIn, wireOut atomic.Int64

	mu        sync.Mutex
	byVerb    map[string]*Count
	writes    []Write
	sent      map[string]time.Time
	published published
	right     time.Time
	turned    chan struct{} // closed when the summary is right for the first time
}

func newCounts(summary string, expected func() Expected) *counts {
	return &counts{
		summary: summary, expected: expected, byVerb: map[string]*Count{}, sent: map[string]time.Time{},
		published: published{}, turned: make(chan struct{}),
	}
}

// begin counts a request; done has to be called at its end.
func (c *counts) begin(w http.ResponseWriter, r *http.Request, resource string) (http.ResponseWriter, func()) {
	if isHarness(r.Context()) {
		return w, func() {}
	}
	verb := verbOf(r)
	c.mu.Lock()
	count := c.byVerb[resource+" "+verb]
	if count == nil {
		count = &Count{}
		c.byVerb[resource+" "+verb] = count
	}
	count.Requests++
	count.BytesIn += max(0, r.ContentLength)
	c.mu.Unlock()
	cw := &countedWriter{ResponseWriter: w, counts: c, count: count}
	return cw, func() {
		if cw.status >= http.StatusBadRequest {
			c.mu.Lock()
			count.Failed++
			c.mu.Unlock()
		}
	}
}

func verbOf(r *http.Request) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	switch {
	case (query{r.URL.Query()}).is("watch"):
		return "watch"
	case r.PathValue("name") != "":
		return "get"
	}
	return "list"
}

type countedWriter struct {
	http.ResponseWriter
	counts *counts
	count  *Count
	status int
}

func (w *countedWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.counts.mu.Lock()
	w.count.BytesOut += int64(n)
	w.counts.mu.Unlock()
	return n, err
}

func (w *countedWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// sentState notes that a client has been sent everything.
func (c *counts) sentState(resource string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.sent[resource]; !ok {
		c.sent[resource] = at
	}
}

// state returns a copy, with the writes from number from on.
func (c *counts) state(from int) State {
	expected := c.expected()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{
		Counts: map[string]Count{}, Writes: slices.Clone(c.writes[min(max(from, 0), len(c.writes)):]), SentState: maps.Clone(c.sent),
		Right: c.right, Published: c.published.sum(c.summary), Expected: expected, WireIn: c.wireIn.Load(), WireOut: c.wireOut.Load(),
	}
	s.RightNow = s.Published.right(expected)
	for verb, count := range c.byVerb {
		s.Counts[verb] = *count
	}
	return s
}

// countedListener counts the bytes of its connections.
type countedListener struct {
	net.Listener
	counts *counts
}

func (l countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{conn, l.counts}, nil
}

type countedConn struct {
	net.Conn
	counts *counts
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.counts.wireIn.Add(int64(n))
	return n, err
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.counts.wireOut.Add(int64(n))
	return n, err
}
