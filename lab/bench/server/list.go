package server

import (
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// page is a part of a list.
type page struct {
	from, to int // numbers
	items    int
	size     int // bytes of all items, as they stand in the list
	meta     metav1.ListMeta
}

// serveList answers a list of pods or nodes. Pages of one list are of one state,
// as a real server reads them at one version.
func (s *Server) serveList(w http.ResponseWriter, r *http.Request, e *encoder, f format) error {
	q := query{r.URL.Query()}
	state, from := s.cluster.view(e.pods), 0
	if token := q.Get("continue"); token != "" {
		var err error
		if state, from, err = s.resume(e, token); err != nil {
			return err
		}
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	if q.Get("resourceVersion") == "0" {
		limit = 0 // what comes from the cache comes whole
	}
	p := s.measure(e, f, q, &state, from, limit)
	if p.meta.Continue != "" {
		s.remember(e, state)
	}
	w.Header().Set("Content-Type", f.mediaType())
	body := io.Writer(w)
	if s.acceptsGzip(r) && p.size > gzipFrom {
		w.Header().Set("Content-Encoding", "gzip")
		gz, _ := gzip.NewWriterLevel(w, gzipLevel)
		defer gz.Close()
		body = gz
	}
	_ = s.sendList(body, e, f, q, &state, p) // fails when the client is gone
	if p.meta.Continue == "" {
		s.counts.sentState(e.name, s.now())
	}
	return nil
}

// measure goes over the page once without making anything: a protobuf list begins
// with its length.
func (s *Server) measure(e *encoder, f format, q query, state *view, from, limit int) page {
	p := page{from: from, to: state.end, meta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(state.version, 10)}}
	active := q.active()
	for i := from; i < state.end; i++ {
		o, ok := state.get(i)
		if !ok || active && o.kind == finishedPod {
			continue
		}
		if limit > 0 && p.items == limit {
			p.to, p.meta.Continue = i, fmt.Sprintf("%d.%d", state.version, i)
			break
		}
		p.items++
		p.size += len(e.items[f][e.kindOf(o)].bytes)
	}
	return p
}

func (s *Server) sendList(w io.Writer, e *encoder, f format, q query, state *view, p page) error {
	head, separator, tail, err := e.envelope(f, p)
	if err != nil {
		return err
	}
	buffer, items, active := head, &e.items[f], q.active()
	first := true
	for i := p.from; i < p.to; i++ {
		o, ok := state.get(i)
		if !ok || active && o.kind == finishedPod {
			continue
		}
		if !first {
			buffer = append(buffer, separator...)
		}
		first = false
		buffer = items[e.kindOf(o)].append(buffer, e.values(i, o))
		if len(buffer) >= batch {
			if _, err := w.Write(buffer); err != nil {
				return err
			}
			buffer = buffer[:0]
		}
	}
	_, err = w.Write(append(buffer, tail...))
	return err
}

// envelope is what stands before, between and after the items of a list.
func (e *encoder) envelope(f format, p page) (head, separator, tail []byte, err error) {
	if f == asJSON {
		head = fmt.Appendf(nil, `{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[`, e.kind, p.meta.ResourceVersion, p.meta.Continue)
		return head, []byte(","), []byte("]}\n"), nil
	}
	kind, err := (&runtime.TypeMeta{APIVersion: "v1", Kind: e.kind + "List"}).Marshal()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("encode list: %w", err)
	}
	meta, err := p.meta.Marshal()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("encode list: %w", err)
	}
	meta = appendField(nil, 1, meta)
	head = appendField([]byte("k8s\x00"), 1, kind) // runtime.Unknown
	head = binary.AppendUvarint(head, 2<<3|2)
	head = binary.AppendUvarint(head, uint64(len(meta)+p.size))
	return append(head, meta...), nil, nil, nil
}

// listKey tells lists under way apart. Pods and nodes may well be at the same version.
type listKey struct {
	resource string
	version  uint64
}

// remember keeps the state for the pages that follow.
func (s *Server) remember(e *encoder, state view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[listKey{e.name, state.version}] = state
	if len(s.states) > keptStates {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(s.states)), func(a, b listKey) int { return cmp.Compare(a.version, b.version) })
		delete(s.states, oldest)
	}
}

func (s *Server) resume(e *encoder, token string) (state view, from int, err error) {
	version, number, _ := strings.Cut(token, ".")
	v, err := strconv.ParseUint(version, 10, 64)
	if err == nil {
		from, err = strconv.Atoi(number)
	}
	if err != nil {
		return view{}, 0, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.states[listKey{e.name, v}]
	if !ok {
		return view{}, 0, apierrors.NewResourceExpired("the provided continue parameter is too old")
	}
	return state, from, nil
}
