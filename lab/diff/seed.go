package diff

import (
	"fmt"
	"math/rand/v2"
)

// SubSeed is what pod number n of a run with a seed is made from. Every pod has its
// own, so that any one can be made again without those before it, and so that it
// makes no difference how many workers share the work.
func SubSeed(seed uint64, n int) uint64 {
	// SplitMix64: neighbours differ in half of their bits.
	z := seed + uint64(n+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// dice throws for one pod.
type dice struct{ r *rand.Rand }

func newDice(subSeed uint64) dice { return dice{rand.New(rand.NewPCG(subSeed, 0))} }

// oneIn is true once in n throws.
func (d dice) oneIn(n int) bool { return d.r.IntN(n) == 0 }

// upTo gives 0 to n.
func (d dice) upTo(n int) int { return d.r.IntN(n + 1) }

func pick[T any](d dice, from []T) T { return from[d.r.IntN(len(from))] }

func hex(subSeed uint64) string { return fmt.Sprintf("%#016x", subSeed) }
