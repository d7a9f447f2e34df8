package watch

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
)

// known has the objects that have been handed on and not been deleted since. Only
// those can stop counting; of all others a change is no event. It has more of them
// at most, never less: of what it has and the indexer has not, a delete is handed on
// for nothing.
//
// It holds a hash of the name, not the name, which would be as large as a record. That
// two have the same, and one of them is missed when it stops counting without being
// deleted, happens once in 2^64 pairs.
type known struct {
	mu     sync.Mutex
	seed   maphash.Seed
	hashes map[nameHash]struct{}
}

// nameHash is bytes, since a map pads a uint64 with nothing behind it to twice its size.
type nameHash [8]byte

func newKnown() *known { return &known{seed: maphash.MakeSeed(), hashes: make(map[nameHash]struct{})} }

func (k *known) hash(id identity) (sum nameHash) {
	var h maphash.Hash
	h.SetSeed(k.seed)
	_, _ = h.Write(id.namespace)
	_ = h.WriteByte('/')
	_, _ = h.Write(id.name)
	binary.NativeEndian.PutUint64(sum[:], h.Sum64())
	return sum
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
