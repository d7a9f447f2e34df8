package server

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// bookmarkPeriod is how often an API server says how far it is.
	bookmarkPeriod = time.Minute
	// batch is how many bytes are written at once. A real server writes each event by
	// itself; that costs both sides a little more.
	batch = 32 << 10
)

// query is what a list or a watch asks for.
type query struct {
	url.Values
}

func (q query) is(name string) bool {
	on, err := strconv.ParseBool(q.Get(name))
	return err == nil && on
}

// active is whether pods that have finished are not wanted. It is the only
// field selector that means anything here: no other excludes a pod.
func (q query) active() bool {
	return strings.Contains(q.Get("fieldSelector"), "status.phase!=Succeeded")
}

// timeout is when the server ends a watch.
func (q query) timeout() time.Duration {
	if seconds, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return 30 * time.Minute
}

// serveWatch answers a watch of pods or nodes.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, e *encoder, f format) error {
	q := query{r.URL.Query()}
	initial := q.is("sendInitialEvents")
	if q.Has("sendInitialEvents") && s.NoWatchList {
		return forbidInitialEvents(e)
	}
	version := q.Get("resourceVersion")
	state := s.cluster.view(e.pods)
	// Without a version every watch begins with the present state.
	whole := initial || version == "" || version == "0"
	if !whole {
		at, err := strconv.ParseUint(version, 10, 64)
		if err != nil {
			return apierrors.NewBadRequest("resourceVersion: " + err.Error())
		}
		log, ok := s.cluster.after(at)
		if !ok {
			return apierrors.NewResourceExpired("too old resource version: " + version)
		}
		state.log = log
	}
	out := s.openStream(w, r, f, initial)
	defer out.close()
	if whole {
		if err := s.sendState(out, e, f, q, &state, initial); err != nil {
			return nil // the client is gone, and cannot be told
		}
	}
	s.follow(r, out, e, f, q, state.log)
	return nil
}

// forbidInitialEvents is what servers answer that know the parameter but not how.
func forbidInitialEvents(e *encoder) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", field.ErrorList{
		field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled for "+e.name),
	})
}

// sendState sends each object that there is, and after that a bookmark if the
// client wants to know where the state ends.
func (s *Server) sendState(out *stream, e *encoder, f format, q query, state *view, mark bool) error {
	frames, active := &e.frames[f][added], q.active()
	buffer := make([]byte, 0, 2*batch)
	for i := range state.end {
		o, ok := state.get(i)
		if !ok || active && o.kind == finishedPod {
			continue
		}
		buffer = frames[e.kindOf(o)].append(buffer, e.values(i, o))
		if len(buffer) >= batch {
			if _, err := out.Write(buffer); err != nil {
				return err
			}
			buffer = buffer[:0]
		}
	}
	if mark {
		end, err := e.bookmark(f, state.version, true)
		if err != nil {
			return err
		}
		buffer = append(buffer, end...)
	}
	if _, err := out.Write(buffer); err != nil {
		return err
	}
	err := out.flush()
	s.counts.sentState(e.name, time.Now())
	return err
}

// follow sends what changes, until the client goes or has to come again.
func (s *Server) follow(r *http.Request, out *stream, e *encoder, f format, q query, log int) {
	timeout := time.NewTimer(q.timeout())
	defer timeout.Stop()
	tick := time.NewTicker(bookmarkPeriod)
	defer tick.Stop()
	var buffer []byte
	for {
		changes, moved, version := s.cluster.since(log)
		log += len(changes)
		buffer = buffer[:0]
		for _, ch := range changes {
			if ch.pods != e.pods {
				continue
			}
			what := ch.event
			if ch.object.kind == finishedPod && what == modified && q.active() {
				what = deleted
			}
			buffer = e.frames[f][what][e.kindOf(ch.object)].append(buffer, e.values(ch.number, ch.object))
		}
		if len(buffer) > 0 {
			if _, err := out.Write(buffer); err != nil || out.flush() != nil {
				return
			}
		}
		select {
		case <-moved:
		case <-tick.C:
			mark, err := e.bookmark(f, version, false)
			if err != nil || !q.is("allowWatchBookmarks") {
				continue
			}
			if _, err := out.Write(mark); err != nil || out.flush() != nil {
				return
			}
		case <-timeout.C:
			return
		case <-r.Context().Done():
			return
		case <-s.ending:
			return
		}
	}
}

// stream is the body of a watch. A real server compresses the streams that begin
// with the present state, each flush as a gzip member of its own.
type stream struct {
	w  http.ResponseWriter
	gz *gzip.Writer
	// open is whether the member has been begun.
	open bool
}

func (s *Server) openStream(w http.ResponseWriter, r *http.Request, f format, compress bool) *stream {
	out := &stream{w: w}
	header := w.Header()
	header.Set("Content-Type", f.mediaType()+";stream=watch")
	if f == asJSON {
		header.Set("Content-Type", mediaJSON)
	}
	if compress && s.acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
		out.gz, _ = gzip.NewWriterLevel(io.Discard, gzipLevel) // the level is one
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	return out
}

func (o *stream) Write(p []byte) (int, error) {
	if o.gz == nil || len(p) == 0 {
		return o.w.Write(p)
	}
	if !o.open {
		o.gz.Reset(o.w)
		o.open = true
	}
	return o.gz.Write(p)
}

func (o *stream) flush() error {
	if o.open {
		o.open = false
		// Without the flush a reader would hold back the end of the member until the
		// next one begins.
		if err := errors.Join(o.gz.Flush(), o.gz.Close()); err != nil {
			return err
		}
	}
	o.w.(http.Flusher).Flush()
	return nil
}

func (o *stream) close() { _ = o.flush() }
