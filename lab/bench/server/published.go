package server

import (
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// What the controller writes on its ConfigMaps; docs/configmaps.md has the words.
// They are not imported: the benchmark measures a program, and what that
// program promises is its document.
const (
	annotationBase      = "gpu-summary/base"
	annotationRequested = "gpu-summary/requested"
)

// Published is what the summary says, all of its shards together.
type Published struct {
	// Total is what it says is requested, -1 if it says nothing.
	Total int64 `json:"total"`
	// Sum is the sum of the rows.
	Sum  int64 `json:"sum"`
	Rows int   `json:"rows"`
	Used int   `json:"used"` // rows that are not zero
}

// right is whether that is what the cluster is like. Rivals publish no total and have no rows
// for nodes on which nothing is requested.
func (p Published) right(e Expected) bool {
	return p.Rows > 0 && p.Sum == e.Requested && p.Used == e.Used &&
		(p.Total == e.Requested && p.Rows == e.Rows || p.Total < 0 && p.Rows == e.Used)
}

// published is what each ConfigMap says, by name.
type published map[string]said

type said struct {
	base string
	Published
}

// read reads a ConfigMap; not ok if its values are no numbers.
func read(cm *corev1.ConfigMap) (said, bool) {
	s := said{base: cm.Annotations[annotationBase], Published: Published{Total: -1}}
	if s.base == "" {
		s.base = cm.Name
	}
	if total, err := strconv.ParseInt(cm.Annotations[annotationRequested], 10, 64); err == nil {
		s.Total = total
	}
	for _, value := range cm.Data {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return said{}, false
		}
		s.Rows++
		s.Sum += n
		if n != 0 {
			s.Used++
		}
	}
	return s, true
}

// sum adds what belongs to one base.
func (p published) sum(base string) Published {
	out := Published{Total: -1}
	for name, s := range p {
		if s.base != base {
			continue
		}
		if name == base {
			out.Total = s.Total
		}
		out.Sum, out.Rows, out.Used = out.Sum+s.Sum, out.Rows+s.Rows, out.Used+s.Used
	}
	return out
}

// wrote notes a write of a ConfigMap, and whether the summary is right with it. o is
// nil when the object was deleted.
func (s *Server) wrote(st *store, r *http.Request, o stored, refused error) {
	if st.kind.Kind != "ConfigMap" {
		return
	}
	w := Write{At: s.now(), Name: r.PathValue("name"), Verb: verbOf(r), Bytes: max(0, r.ContentLength)}
	c := s.counts
	if refused != nil {
		w.Refused = refused.Error()
		c.mu.Lock()
		c.writes = append(c.writes, w)
		c.mu.Unlock()
		return
	}
	var is said
	numbers := false
	if cm, ok := o.(*corev1.ConfigMap); ok {
		w.Name = cm.Name
		is, numbers = read(cm)
	}
	expected := c.expected()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes = append(c.writes, w)
	if !numbers {
		delete(c.published, w.Name)
	} else {
		c.published[w.Name] = is
	}
	if c.right.IsZero() && c.published.sum(c.summary).right(expected) {
		c.right = w.At
		close(c.turned)
	}
}
