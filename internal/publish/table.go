package publish

import (
	"hash/fnv"
	"math/bits"
)

// DefaultMaxObjectBytes is the weight of an object from which on its rows move into
// shards.
//
// What has to fit is the object as etcd stores it, 1.5 MiB at most, and
// managedFields name every key of the data once more. An object of a given weight
// is stored in at most twice as many bytes, which leaves half a MiB for
// annotations and for what other managers own. (Of an object that is too large the
// API server drops managedFields and tries again. That it may come to this is no
// reason to let it: who owns which field is then lost.)
const DefaultMaxObjectBytes = 512 << 10

const (
	// keyOverhead is added to a key and its value to give its weight. With it twice
	// the weight is never less than what is stored: key and value with 8 bytes of
	// framing, and in managedFields the key once more with 8. Without it a hundred
	// thousand nodes with short names would be found too large only by etcd.
	keyOverhead = 16
	// maxShards bounds the annotation that lists them.
	maxShards = 4096
)

// table holds the rows of one set of objects, rendered, in the order of their nodes.
type table struct {
	key    string // of the document that holds all rows; "" for a key for each node
	text   []byte
	pieces []piece
	weight int
	hashed bool

	scratch []piece
}

// piece is what one node contributes. It is never divided.
type piece struct {
	node     string
	from, to int // in text
	weight   int
	hash     uint64
}

func (t *table) reset(key string) {
	*t = table{key: key, text: t.text[:0], pieces: t.pieces[:0], scratch: t.scratch}
}

// add appends what a node contributes.
func (t *table) add(node string, render func([]byte) []byte) {
	p := piece{node: node, from: len(t.text)}
	t.text = render(t.text)
	p.to = len(t.text)
	if p.weight = p.to - p.from; t.key == "" {
		p.weight += len(node) + keyOverhead
	}
	t.pieces, t.weight = append(t.pieces, p), t.weight+p.weight
}

func (t *table) of(p *piece) []byte { return t.text[p.from:p.to] }

// weigh is what data costs in an object.
func weigh(data map[string]string) (weight int) {
	for key, value := range data {
		weight += len(key) + len(value) + keyOverhead
	}
	return weight
}

// shards decides how many shards hold the rows; 0 means that all rows fit on the
// base beside the head. Else it is a power of two. It stays what it is for as long
// as possible: it grows when an object would exceed the limit, and shrinks when
// with half as many none would come near it. A cluster whose size goes up and down
// by a few nodes would otherwise be written anew each time.
//
// now comes from an annotation that anybody may edit. Whatever it says, the result
// is a number that fits.
func (t *table) shards(head, limit, now int) int {
	least := t.fewest(head, limit)
	if now != 0 && bits.OnesCount(uint(now)) != 1 || now < 0 {
		return least
	}
	return min(max(now, least), t.fewest(head, limit-limit/4))
}

// fewest is the smallest number of shards with which no object exceeds the limit.
func (t *table) fewest(head, limit int) int {
	if head+t.weight <= limit {
		return 0
	}
	n := 1
	for n < maxShards && (n*limit < t.weight || t.heaviest(n) > limit) {
		n *= 2
	}
	return n
}

// heaviest is the weight of the heaviest of n shards.
func (t *table) heaviest(n int) (heaviest int) {
	t.hash()
	weights := make([]int, n)
	for i := range t.pieces {
		p := &t.pieces[i]
		index := p.shard(n)
		weights[index] += p.weight
		heaviest = max(heaviest, weights[index])
	}
	return heaviest
}

// shard is the place of a node among n shards. It depends on nothing but the
// node's name, so nodes that come and go move no other; and since n is a power of
// two, a node of shard i is in i or i+n when n has doubled.
func (p *piece) shard(n int) int { return int(p.hash & uint64(n-1)) }

func (t *table) hash() {
	if t.hashed {
		return
	}
	t.hashed = true
	h := fnv.New64a()
	for i := range t.pieces {
		h.Reset()
		_, _ = h.Write([]byte(t.pieces[i].node)) // cannot fail
		t.pieces[i].hash = mix(h.Sum64())
	}
}

// mix lets every bit of the hash depend on every other. The low bits of FNV follow
// only the low bits of the letters.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// split divides the rows among n shards, nil for none. Within each they keep their
// order.
func (t *table) split(n int) [][]piece {
	if n == 0 {
		return nil
	}
	t.hash()
	ends := make([]int, n)
	for i := range t.pieces {
		ends[t.pieces[i].shard(n)]++
	}
	for i := 1; i < n; i++ {
		ends[i] += ends[i-1]
	}
	if cap(t.scratch) < len(t.pieces) {
		t.scratch = make([]piece, len(t.pieces))
	}
	t.scratch = t.scratch[:len(t.pieces)]
	next := append([]int{0}, ends...)
	for _, p := range t.pieces {
		index := p.shard(n)
		t.scratch[next[index]] = p
		next[index]++
	}
	parts := make([][]piece, n)
	for i, from := 0, 0; i < n; i++ {
		parts[i], from = t.scratch[from:ends[i]], ends[i]
	}
	return parts
}
