package integration

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// wire is the controller's way to the API server. It counts requests and can be
// cut.
type wire struct {
	next http.RoundTripper

	mu      sync.Mutex
	cut     bool
	expired bool // watches that resume are told that their version is too old
	relists int  // watches and lists of pods that start from the beginning
	watches map[*body]struct{}
	writes  int
	onWrite func(writes int) // called before a write goes out

	refuseAfter int // writes that go through before all others are refused, 0 for all
	refused     int
}

// through puts w between a controller and the API server.
func (w *wire) through(config *rest.Config, _ *run.Options) {
	w.watches = map[*body]struct{}{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	})
}

var errCut = errors.New("the wire is cut")

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	isWatch := req.URL.Query().Get("watch") != ""
	if res, err := w.before(req, isWatch); res != nil || err != nil {
		return res, err
	}
	res, err := w.next.RoundTrip(req)
	if err != nil || !isWatch {
		return res, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b := &body{ReadCloser: res.Body, wire: w}
	w.watches[b] = struct{}{}
	res.Body = b
	return res, nil
}

// before decides what becomes of a request.
func (w *wire) before(req *http.Request, isWatch bool) (*http.Response, error) {
	isWrite := req.Method == http.MethodPut || req.Method == http.MethodPost || req.Method == http.MethodDelete
	if isWrite {
		w.mu.Lock()
		w.writes++
		n, hook := w.writes, w.onWrite
		w.mu.Unlock()
		if hook != nil {
			hook(n)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	resumes := isWatch && req.URL.Query().Get("sendInitialEvents") == ""
	switch {
	case w.cut:
		return nil, errCut
	case isWrite && w.refuseAfter > 0 && w.writes > w.refuseAfter:
		w.refused++
		return nil, errCut
	case resumes && w.expired:
		return tooOld(req), nil
	case !resumes && req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/pods"):
		w.relists++
		w.expired = false
	}
	return nil, nil
}

// tooOld is what an API server answers when the version to resume from has been
// compacted away.
func tooOld(req *http.Request) *http.Response {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`
	return &http.Response{
		StatusCode: http.StatusGone, Status: "410 Gone", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewBufferString(status)),
	}
}

// sever ends every watch and lets no request through until mend.
func (w *wire) sever() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for b := range w.watches {
		_ = b.ReadCloser.Close()
		delete(w.watches, b)
	}
}

// mend lets requests through again; the versions to resume from are lost, until
// pods have been listed anew.
func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut, w.expired = false, true
}

func (w *wire) read(what func(w *wire) int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return what(w)
}

// body is the stream of a watch.
type body struct {
	io.ReadCloser
	wire *wire
}

func (b *body) Close() error {
	b.wire.mu.Lock()
	defer b.wire.mu.Unlock()
	delete(b.wire.watches, b)
	return b.ReadCloser.Close()
}
