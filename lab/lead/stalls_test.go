package lead_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

var (
	stalls = flag.Int("stalls", 10, "how many stalls of a lease's traffic to try")
	seed   = flag.Uint64("seed", 1, "what the stalls are made from")
)

// clusters is how many leases are contended for at a time.
const clusters = 10

// TestStalls stalls the leader's requests, their replies, or both, for a random
// time, and never sees two work at once.
func TestStalls(t *testing.T) {
	t.Parallel()
	for i := range clusters {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(*seed, uint64(i)))
			e := newCluster(t, fmt.Sprintf("stalls-%d", i), restarted(product))
			losses := 0
			for range *stalls / clusters {
				leader := e.leader()
				p := e.proxies[leader]
				kind := random.IntN(3)
				if kind != 0 {
					p.stall()
				}
				if kind != 1 {
					p.holdReplies()
				}
				time.Sleep(time.Duration(random.Int64N(int64(2 * duration)))) // how long the stall is
				p.heal()
				if e.leader() != leader {
					losses++
				}
			}
			t.Logf("seed %d: %d of %d stalls cost the leader its lease; overlaps: %q", *seed, losses, *stalls/clusters, e.overlapped())
			if e.overlapped() != "" {
				t.Error(e.overlapped())
			}
		})
	}
}

// restarted starts a candidate again when it ends, as a kubelet would.
func restarted(c candidate) candidate {
	return func(ctx context.Context, config *rest.Config, name, identity string, work work) error {
		for n := 0; ctx.Err() == nil; n++ {
			_ = c(ctx, config, name, fmt.Sprintf("%s_%d", identity, n), work)
		}
		return nil
	}
}

// leader waits until somebody leads, and names it.
func (e *cluster) leader() (id string) {
	e.Helper()
	e.await("somebody to lead", func() bool {
		for id = range e.working {
			return true
		}
		return false
	})
	return id
}
