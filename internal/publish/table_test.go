package publish

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// tableOf has a row for each of so many nodes.
func tableOf(nodes []string) *table {
	var t table
	t.reset("")
	for _, node := range nodes {
		t.add(node, func(b []byte) []byte { return append(b, '8') })
	}
	return &t
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("gpu-node-%05d", i)
	}
	return out
}

// places says on which shard each node is.
func places(t *table, n int) map[string]int {
	out := make(map[string]int)
	for index, part := range t.split(n) {
		for _, p := range part {
			out[p.node] = index
		}
	}
	return out
}

// TestShardsHoldEverythingOnce, in order, none above the limit, for any names and
// any limit.
func TestShardsHoldEverythingOnce(t *testing.T) {
	r := seeded(t)
	for range 200 {
		var nodes []string
		for i := range r.IntN(3000) {
			nodes = append(nodes, fmt.Sprintf("%s%06d", strings.Repeat("x", r.IntN(40)), i))
		}
		tab := tableOf(nodes)
		head, limit := r.IntN(2000), 1000+r.IntN(20_000)
		n := tab.shards(head, limit, []int{0, 1, 2, 3, 64, maxShards, 1 << 40, -8}[r.IntN(8)])
		parts := tab.split(n)
		if n == 0 {
			if head+tab.weight > limit {
				t.Fatalf("%d bytes and a head of %d are one object, the limit is %d", tab.weight, head, limit)
			}
			continue
		}
		if len(parts) != n {
			t.Fatalf("%d parts, want %d", len(parts), n)
		}
		seen := map[string]bool{}
		for _, part := range parts {
			weight, last := 0, ""
			for _, p := range part {
				if seen[p.node] || len(nodes) < len(seen) {
					t.Fatalf("%s is there twice", p.node)
				}
				seen[p.node] = true
				weight += p.weight
				last = p.node
			}
			if weight > limit {
				t.Fatalf("a shard of %d bytes, last %s; the limit is %d", weight, last, limit)
			}
		}
		if len(seen) != len(nodes) {
			t.Fatalf("%d nodes on shards, want %d", len(seen), len(nodes))
		}
	}
}

// TestANodeStaysInItsShard while others come and go, and when the number of shards
// doubles it goes to one place only.
func TestANodeStaysInItsShard(t *testing.T) {
	r := seeded(t)
	all := names(5000)
	for n := 1; n <= 64; n *= 2 {
		before := places(tableOf(all), n)
		var left []string
		for _, node := range all {
			if r.IntN(3) > 0 {
				left = append(left, node)
			}
		}
		for node, index := range places(tableOf(left), n) {
			if before[node] != index {
				t.Fatalf("with %d shards %s went from %d to %d because others went", n, node, before[node], index)
			}
		}
		for node, index := range places(tableOf(all), 2*n) {
			if index != before[node] && index != before[node]+n {
				t.Fatalf("from %d to %d shards %s went from %d to %d", n, 2*n, node, before[node], index)
			}
		}
	}
}

// TestShardsAreOfOneSize also for names that differ in nothing but a number, and
// that of a rack with even numbers only. Uneven shards would double their number too
// early.
func TestShardsAreOfOneSize(t *testing.T) {
	const n, nodes = 32, 32 * 1000
	for what, digits := range map[string]string{"all numbers": "0123456789", "even digits": "02468"} {
		all := make([]string, nodes)
		for i := range all {
			all[i] = "gpu-node-"
			for rest := i; len(all[i]) < 18; rest /= len(digits) {
				all[i] += string(digits[rest%len(digits)])
			}
		}
		counts := make([]int, n)
		for _, index := range places(tableOf(all), n) {
			counts[index]++
		}
		for index, count := range counts {
			if count < 850 || count > 1150 { // five standard deviations
				t.Errorf("%s: shard %d has %d nodes, want about 1000", what, index, count)
			}
		}
	}
}

// TestShardsGrowAndShrinkLate: a size that goes up and down around a limit does not
// have everything written anew each time.
func TestShardsGrowAndShrinkLate(t *testing.T) {
	const limit = 10_000
	changes, now := 0, 0
	at := map[int]int{} // number of nodes at which n was reached
	step := func(nodes int) {
		if n := tableOf(names(nodes)).shards(0, limit, now); n != now {
			now = n
			changes++
			at[n] = nodes
		}
	}
	for nodes := 0; nodes <= 4000; nodes += 20 {
		step(nodes)
	}
	top, grown := now, maps.Clone(at)
	for nodes := 4000; nodes >= 0; nodes -= 20 {
		step(nodes)
	}
	if top < 16 || now != 0 {
		t.Fatalf("4000 nodes gave %d shards, none gave %d", top, now)
	}
	for n := top / 2; n > 1; n /= 2 {
		if up, down := grown[2*n], at[n]; down > up*4/5 {
			t.Errorf("%d shards become %d at %d nodes and %d again at %d", n, 2*n, up, n, down)
		}
	}
	changes = 0
	around := grown[8]
	step(around)
	for range 100 {
		step(around + rand.IntN(80) - 40)
	}
	if changes > 1 {
		t.Errorf("the number of shards changed %d times around %d nodes", changes, around)
	}
}

// TestTwiceTheWeightIsNoLessThanWhatIsStored: what etcd is given of a key is its
// protobuf and its name in managedFields.
func TestTwiceTheWeightIsNoLessThanWhatIsStored(t *testing.T) {
	for _, length := range []int{1, 6, 20, 51, 253} {
		node := strings.Repeat("n", length)
		cm := configMapWith(map[string]string{node: "8"})
		bare := configMapWith(nil)
		stored := cm.Size() - bare.Size() + len(`"f:":{},`) + len(node)
		if weight := tableOf([]string{node}).weight; 2*weight < stored {
			t.Errorf("a node with a name of %d characters is stored in %d bytes and weighs %d", length, stored, weight)
		}
	}
}

func TestSizeNames(t *testing.T) {
	if name := shardName("gpu-capacity", 0); name != "gpu-capacity-shard-0001" {
		t.Errorf("the first shard is called %s", name)
	}
}
