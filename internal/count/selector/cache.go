package selector

import (
	"slices"
	"strings"
	"sync"
)

// Cache remembers, from one pass to the next, what classes select. It makes no
// difference to any answer. The zero value is ready, and safe for concurrent use.
//
// What a pass did not ask for is forgotten at the end of the next one, so that the
// cache holds what there is and not what there was.
type Cache struct {
	mu       sync.Mutex
	pass     uint64
	programs map[string]*program
	results  map[*Devices]*entry

	evaluated int // devices on which a selector was evaluated, for tests
}

// entry is what is known of one version of a slice.
type entry struct {
	used    uint64
	results []result // one for each program that was asked about, few
}

type result struct {
	program  *program
	selected Set
	failed   int
	why      string
}

// Pass is one pass over all slices. It holds the cache's lock: End it.
type Pass struct{ cache *Cache }

// Begin starts a pass.
func (c *Cache) Begin() Pass {
	c.mu.Lock()
	c.pass++
	if c.results == nil {
		c.programs, c.results = make(map[string]*program), make(map[*Devices]*entry)
	}
	return Pass{c}
}

// End forgets what neither this pass nor the one before has asked for.
func (p Pass) End() {
	c := p.cache
	for key, program := range c.programs {
		if program.used+1 < c.pass {
			delete(c.programs, key)
		}
	}
	for devices, e := range c.results {
		if e.used+1 < c.pass {
			delete(c.results, devices)
			continue
		}
		e.results = slices.DeleteFunc(e.results, func(r result) bool { return r.program.used+1 < c.pass })
	}
	c.mu.Unlock()
}

// Class is a class's selectors, ready to be asked.
type Class struct{ program *program }

// Class prepares selectors, all of which have to hold: a class without any selects
// every device. The error says why they can never be evaluated.
func (p Pass) Class(expressions []string) (Class, error) {
	key := strings.Join(expressions, "\x00")
	prog := p.cache.programs[key]
	if prog == nil {
		prog = compile(expressions)
		p.cache.programs[key] = prog
	}
	prog.used = p.cache.pass
	return Class{prog}, prog.err
}

// Slice is one version of a slice, ready to be asked.
type Slice struct {
	cache   *Cache
	devices *Devices
	entry   *entry
}

// Slice finds what is known of a slice.
func (p Pass) Slice(d *Devices) Slice {
	e := p.cache.results[d]
	if e == nil {
		e = &entry{}
		p.cache.results[d] = e
	}
	e.used = p.cache.pass
	return Slice{p.cache, d, e}
}

// Select says which devices of the slice a class selects, on how many of them its
// selectors failed, and why they failed on the first of those.
func (s Slice) Select(c Class) (selected Set, failed int, why string) {
	for i := range s.entry.results {
		if r := &s.entry.results[i]; r.program == c.program {
			return r.selected, r.failed, r.why
		}
	}
	r := c.program.on(s.devices)
	s.cache.evaluated += s.devices.count
	s.entry.results = append(s.entry.results, r)
	return r.selected, r.failed, r.why
}
