package watch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
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
// as deleted.
type stream[R record] struct {
	*kind[R]
	known    *known // nil if all are kept
	position *position
	initial  bool // until the bookmark that ends the initial events
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
	return &stream[R]{kind: k, body: body, known: known, position: position, in: bufio.NewReaderSize(body, bufferSize)}
}

// Close ends the stream, and a Decode that waits for the next event.
func (s *stream[R]) Close() { _ = s.body.Close() }

// Decode waits for the next event that counts.
func (s *stream[R]) Decode() (apiwatch.EventType, runtime.Object, error) {
	for {
		event, object, err := s.next()
		if err != nil {
			return "", nil, err
		}
		out, keep, err := s.read(event, object)
		if err != nil || keep {
			return out.Type, out.Object, err
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
		return apiwatch.Event{Type: event, Object: status}, true, err
	}
	return out, false, fmt.Errorf("%w: an event of type %q", errMalformed, event)
}

func (s *stream[R]) change(event apiwatch.EventType, object []byte) (out apiwatch.Event, keep bool, err error) {
	r, id, counts, err := s.record(object)
	if err != nil {
		return out, false, err
	}
	switch {
	case s.known == nil:
	case event != apiwatch.Deleted && counts:
		s.known.add(id)
	case s.known.remove(id):
		// Nobody's last state is left: handlers hear of a pod that is gone.
		event, r = apiwatch.Deleted, s.mark(id)
	default:
		if !s.initial {
			s.position.see(id.resourceVersion)
		}
		return out, false, nil
	}
	if !s.initial {
		s.position.pass(string(id.resourceVersion))
	}
	return apiwatch.Event{Type: event, Object: r}, true, nil
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
		message, err := s.open(object, "")
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

// record makes a record of an object, if it counts. It needs none to know that one
// without evidence does not.
func (s *stream[R]) record(object []byte) (r R, id identity, counts bool, err error) {
	if s.json != nil {
		obj, err := decodeFully(object)
		if err != nil {
			return r, id, false, err
		}
		r, err = s.trim(obj)
		return r, identityOf(obj), err == nil && s.keeps(r), err
	}
	message, err := s.open(object, "")
	if err != nil {
		return r, id, false, err
	}
	return s.decodeMessage(message, &s.scratch)
}

// open takes an object of this kind, or of a list of it, out of its envelope.
func (k *kind[R]) open(object []byte, suffix string) (message []byte, err error) {
	name, message, err := readObject(object)
	if base, ok := bytes.CutSuffix(name, []byte(suffix)); err == nil && (!ok || string(base) != k.name) {
		err = fmt.Errorf("%w: the API server sent a %s among %s", errMalformed, name, k.resource)
	}
	return message, err
}

// decodeMessage makes a record of an object's bytes, if it counts. What was cut is
// left in scratch.
func (k *kind[R]) decodeMessage(message []byte, scratch *[]byte) (r R, id identity, counts bool, err error) {
	if id, err = readIdentity(message); err != nil {
		return r, id, false, err
	}
	if k.evidence != nil {
		if found, err := k.evidence.inObject(message); err != nil || !found {
			return r, id, false, err
		}
	}
	cut, err := k.shape.cut((*scratch)[:0], message)
	if err == nil {
		*scratch = cut
		r, err = k.decode(cut)
	}
	if err != nil {
		return r, id, false, fmt.Errorf("decode %s %s/%s: %w", k.name, id.namespace, id.name, err)
	}
	return r, id, k.keeps(r), nil
}

func (k *kind[R]) keeps(r R) bool { return k.counts == nil || k.counts(r) }

// decodeFully decodes an object as any client does.
func decodeFully(object []byte) (runtime.Object, error) {
	return runtime.Decode(scheme.Codecs.UniversalDeserializer(), object)
}

func identityOf(obj runtime.Object) (id identity) {
	if o, ok := obj.(metav1.Object); ok {
		id = identity{[]byte(o.GetNamespace()), []byte(o.GetName()), []byte(o.GetResourceVersion())}
	}
	return id
}

// known has the objects that have been handed on and not been deleted since. Only
// those can stop counting; of all others a change is no event. It has more of them
// at most, never less: of what it has and the indexer has not, a delete is handed on
// for nothing.
//
// It holds a hash of the name, not the name, which would be as large as a record.
// That two have the same, and one of them is missed when it stops counting without
// being deleted, happens once in 2^64 pairs.
type known struct {
	mu     sync.Mutex
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newKnown() *known { return &known{seed: maphash.MakeSeed(), hashes: make(map[uint64]struct{})} }

func (k *known) hash(id identity) uint64 {
	var h maphash.Hash
	h.SetSeed(k.seed)
	_, _ = h.Write(id.namespace)
	_ = h.WriteByte('/')
	_, _ = h.Write(id.name)
	return h.Sum64()
}

func (k *known) add(id identity) {
	hash := k.hash(id)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hashes[hash] = struct{}{}
}

func (k *known) remove(id identity) (had bool) {
	hash := k.hash(id)
	k.mu.Lock()
	defer k.mu.Unlock()
	_, had = k.hashes[hash]
	delete(k.hashes, hash)
	return had
}
