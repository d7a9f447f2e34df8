package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"
)

// undecodableError is met by an object that came whole and cannot be decoded. It is
// left out, and the others are read as if it were not there: asking again would meet
// it again, and meanwhile every other number would stand still.
//
// What is known of such an object stays in the store. Its last record is the last that
// anybody could read, and more likely true than that it asks for nothing. A deletion
// needs only the name, and is one all the same.
//
// It is not used for what is wrong around objects: a frame that cannot be taken
// apart, an object of another kind, an envelope that is missing. There the server is
// not speaking as it was asked to, and a cache that leaves out everything would call
// itself complete.
type undecodableError struct{ err error }

func (e *undecodableError) Error() string { return e.err.Error() }
func (e *undecodableError) Unwrap() error { return e.err }

// undecodable marks an error as one, and nil as none.
func undecodable(err error) error {
	if err == nil {
		return nil
	}
	return &undecodableError{err}
}

func isUndecodable(err error) bool {
	var u *undecodableError
	return errors.As(err, &u)
}

// mostUndecodable bounds how many objects are remembered by name. Beyond it some are
// logged again when they are met again.
const mostUndecodable = 1000

// undecodables remembers the objects of one resource that could not be decoded, to log
// each version once however often it is met, and to know of how many the store has not
// the newest.
type undecodables struct {
	total   atomic.Int64
	missing atomic.Int64 // len(now)

	mu     sync.Mutex
	logged map[string]string   // version by object
	now    map[string]struct{} // since the last list
}

// anew forgets what is missing: everything is about to be read.
func (u *undecodables) anew() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.now)
	u.missing.Store(0)
}

// met notes an object that could not be decoded.
func (u *undecodables) met(logger klog.Logger, resource string, id identity, object []byte, err error) {
	key, version := keyOf(id, object), string(id.resourceVersion)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now == nil {
		u.now, u.logged = make(map[string]struct{}), make(map[string]string)
	}
	if len(u.now) < mostUndecodable {
		u.now[key] = struct{}{}
		u.missing.Store(int64(len(u.now)))
	}
	if before, ok := u.logged[key]; ok && before == version {
		return
	}
	if len(u.logged) >= mostUndecodable {
		clear(u.logged)
	}
	u.logged[key] = version
	u.total.Add(1)
	logger.Error(err, "Left out an object that cannot be decoded; what was known of it before is kept", "resource", resource, "object", key, "resourceVersion", version)
}

// cured notes an object that was read or is gone. Nearly always nothing is missing,
// and then it costs nothing.
func (u *undecodables) cured(id identity) {
	if u.missing.Load() == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	key := keyOf(id, nil)
	delete(u.now, key)
	delete(u.logged, key)
	u.missing.Store(int64(len(u.now)))
}

// keyOf names an object, by a hash of its bytes if its name cannot be read.
func keyOf(id identity, object []byte) string {
	if len(id.name) == 0 {
		h := fnv.New64a()
		_, _ = h.Write(object)
		return fmt.Sprintf("one without a name that can be read, of %d bytes with FNV-1a %016x", len(object), h.Sum64())
	}
	if len(id.namespace) == 0 {
		return string(id.name)
	}
	return string(id.namespace) + "/" + string(id.name)
}

// identityInJSON reads the identity of an object that cannot be decoded as a whole.
func identityInJSON(object []byte) (id identity) {
	var o struct {
		Metadata struct{ Namespace, Name, ResourceVersion json.RawMessage }
	}
	// What it gets is better than nothing, also where it fails.
	_ = json.Unmarshal(object, &o)
	text := func(raw json.RawMessage) []byte {
		var s string
		_ = json.Unmarshal(raw, &s)
		return []byte(s)
	}
	return identity{text(o.Metadata.Namespace), text(o.Metadata.Name), text(o.Metadata.ResourceVersion)}
}
