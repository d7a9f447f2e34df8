package watch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

// stream turns the bytes of a watch into events of records, leaving out all that
// do not count. It is a watch.Decoder: the StreamWatcher around it, the reflector,
// the FIFO and the indexer are client-go's, and see a server on which there is
// nothing but what counts.
//
// An event takes the shortest way that is left to it. Bytes in which no GPU is
// mentioned are passed over in the buffer of the connection. Of the others the
// fields that are counted are decoded, by the types of the API, and the record is
// made from those. An object that counted before and does so no more is handed on
// as deleted. One that cannot be decoded is left out (undecodable.go).
type stream[R record] struct {
	*kind[R]
	known    *known // nil if all are kept
	position *position
	initial  bool // until the bookmark that ends the initial events
	stats    *stats
	open     *connection // nil if nobody asks
	logger   klog.Logger
	body     io.ReadCloser
	in       *bufio.Reader
	json     *json.Decoder // for a server that has no protobuf

	pending int    // bytes of the last frame, which are still in the buffer
	large   []byte // a frame that did not fit into it
	scratch []byte // what was cut from an object
}

const (
	// bufferSize is several times the size of a usual object.
	bufferSize = 64 << 10
	// maxFrame is what client-go accepts too. No object is as large: etcd takes 1.5 MiB.
	maxFrame = 16 << 20
)

func newStream[R record](k *kind[R], body io.ReadCloser, known *known, position *position) *stream[R] {
	return &stream[R]{kind: k, body: body, known: known, position: position, in: bufio.NewReaderSize(body, bufferSize), stats: &stats{}, logger: klog.Background()}
}

// Close ends the stream, and a Decode that waits for the next event.
func (s *stream[R]) Close() {
	s.open.end(EndStopped) // if it has not ended by itself
	_ = s.body.Close()
}

// Decode waits for the next event that counts.
func (s *stream[R]) Decode() (apiwatch.EventType, runtime.Object, error) {
	for {
		event, object, err := s.next()
		var out apiwatch.Event
		var keep bool
		if err == nil {
			out, keep, err = s.read(event, object)
		}
		if err != nil {
			s.open.end(endOf(err))
			return "", nil, err
		}
		if keep {
			return out.Type, out.Object, nil
		}
	}
}

// next reads an event. What it returns is good until the next call.
func (s *stream[R]) next() (event apiwatch.EventType, object []byte, err error) {
	if _, err := s.in.Discard(s.pending); err != nil {
		return "", nil, err
	}
	s.pending = 0
	if s.json == nil {
		first, err := s.in.Peek(1)
		if err != nil {
			return "", nil, err
		}
		// Nothing tells here what the server said it would send. Frames begin with
		// their length, and one that begins like JSON would be of two gigabytes.
		if first[0] != '{' {
			frame, err := s.frame()
			if err != nil {
				return "", nil, err
			}
			kind, object, err := readEvent(frame)
			return eventType(kind), object, err
		}
		s.json = json.NewDecoder(s.in)
	}
	var e struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := s.json.Decode(&e); err != nil {
		return "", nil, err
	}
	return eventType([]byte(e.Type)), e.Object, nil
}

// eventType is the type by its name; it costs no copy of it, as a million events
// would.
func eventType(name []byte) apiwatch.EventType {
	for _, event := range [...]apiwatch.EventType{apiwatch.Modified, apiwatch.Added, apiwatch.Deleted, apiwatch.Bookmark, apiwatch.Error} {
		if string(name) == string(event) {
			return event
		}
	}
	return apiwatch.EventType(name)
}

// frame reads what comes behind a length of four bytes.
func (s *stream[R]) frame() ([]byte, error) {
	header, err := s.in.Peek(4)
	if err != nil {
		if len(header) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	length := int(binary.BigEndian.Uint32(header))
	if length > maxFrame {
		return nil, fmt.Errorf("%w: an event of %d bytes", errMalformed, length)
	}
	if 4+length <= s.in.Size() {
		frame, err := s.in.Peek(4 + length)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		s.pending = len(frame)
		if err != nil {
			return nil, err
		}
		return frame[4:], nil
	}
	if _, err := s.in.Discard(4); err != nil {
		return nil, err
	}
	if cap(s.large) < length {
		s.large = make([]byte, length)
	}
	s.large = s.large[:length]
	if _, err := io.ReadFull(s.in, s.large); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return s.large, nil
}

// read decides what becomes of an event.
func (s *stream[R]) read(event apiwatch.EventType, object []byte) (out apiwatch.Event, keep bool, err error) {
	switch event {
	case apiwatch.Added, apiwatch.Modified, apiwatch.Deleted:
		return s.change(event, object)
	case apiwatch.Bookmark:
		s.stats.bookmarks.Add(1)
		r, version, end, err := s.bookmark(object)
		if end {
			s.initial = false
			s.position.pass(string(version))
		} else {
			s.position.see(version)
		}
		return apiwatch.Event{Type: event, Object: r}, end, err
	case apiwatch.Error:
		status, err := decodeFully(object)
		if err == nil {
			s.open.told(status)
		}
		return apiwatch.Event{Type: event, Object: status}, true, err
	}
	return out, false, fmt.Errorf("%w: an event of type %q", errMalformed, event)
}

func (s *stream[R]) change(event apiwatch.EventType, object []byte) (out apiwatch.Event, keep bool, err error) {
	r, id, fate, err := s.record(object)
	switch {
	case err == nil:
	case !isUndecodable(err):
		return out, false, err
	case event != apiwatch.Deleted:
		s.leaveOut(id, object, err)
		return out, false, nil
	case len(id.name) > 0 && len(id.resourceVersion) > 0:
		r = s.mark(id)
	default:
		// Nobody knows what is gone. A new list does not have it.
		return out, false, fmt.Errorf("of what was deleted: %w", err)
	}
	s.stats.undecodable.cured(id)
	if fate != passedOver {
		s.stats.decoded.Add(1)
	}
	switch {
	case s.known == nil:
	case event != apiwatch.Deleted && fate == worthKeeping:
		s.known.add(id)
	case s.known.remove(id):
		// Nobody's last state is left: handlers hear of a pod that is gone.
		event, r = apiwatch.Deleted, s.mark(id)
	default:
		if !s.initial {
			s.position.see(id.resourceVersion)
		}
		s.stats.drop(len(object))
		return out, false, nil
	}
	if !s.initial {
		s.position.pass(string(id.resourceVersion))
	}
	s.stats.handed(len(object))
	return apiwatch.Event{Type: event, Object: r}, true, nil
}

// leaveOut passes by an object that cannot be decoded. The position moves on, so that
// a watch that is taken up again does not meet it again.
func (s *stream[R]) leaveOut(id identity, object []byte, err error) {
	s.stats.undecodable.met(s.logger, s.resource, id, object, err)
	if !s.initial {
		s.position.see(id.resourceVersion)
	}
}

// bookmark reads a bookmark. Only the one that ends the initial events is handed on.
func (s *stream[R]) bookmark(object []byte) (r R, version []byte, end bool, err error) {
	var id identity
	if s.json != nil {
		obj, err := decodeFully(object)
		if err != nil {
			return r, nil, false, err
		}
		id = identityOf(obj)
	} else {
		message, err := s.unwrap(object, "")
		if err != nil {
			return r, nil, false, err
		}
		if id, err = readIdentity(message); err != nil {
			return r, nil, false, err
		}
	}
	if end = bytes.Contains(object, []byte(metav1.InitialEventsAnnotationKey)); end {
		r = s.mark(identity{resourceVersion: id.resourceVersion})
	}
	return r, id.resourceVersion, end, nil
}
