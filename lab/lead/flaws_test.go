package lead_test

import (
	"flag"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

var flaws = flag.Bool("flaws", false, "show client-go's flaws on a real API server, which takes a machine with nothing else to do")

// unhurried skips what depends on requests being a fraction of a second apart. On a
// busy machine a lease is lost in another way than the one that is to be shown.
func unhurried(t *testing.T) {
	t.Helper()
	if !*flaws {
		t.Skip("needs a machine with nothing else to do: run with -flaws")
	}
}

// Flaw a: asked to end, and work drains until another leads, or, where that is not
// how it goes, for a while.
func TestWorkReturnsBeforeTheLeaseIsGivenBack(t *testing.T) {
	unhurried(t)
	t.Parallel()
	script := func(t *testing.T, name string, c candidate) *cluster {
		e := newCluster(t, name, c)
		release := e.holdWork("a")
		defer time.AfterFunc(2*duration, release).Stop()
		e.terminate["a"]()
		e.await("another to lead", e.another)
		release()
		return e
	}
	t.Run("client-go", func(t *testing.T) {
		t.Parallel()
		if e := script(t, "given-back-stock", stock(true, true)); e.overlapped() == "" {
			t.Error("two did not work at once; has client-go changed?")
		}
	})
	t.Run("this project", func(t *testing.T) {
		t.Parallel()
		if e := script(t, "given-back", product); e.overlapped() != "" {
			t.Error(e.overlapped())
		}
	})
}

// Flaws b and c: a's requests stall until another leads, and then come through.
func TestAStallOfTheLeaseAlone(t *testing.T) {
	unhurried(t)
	t.Parallel()
	script := func(t *testing.T, name string, c candidate) (e *cluster, cleared bool) {
		e = newCluster(t, name, c)
		e.proxies["a"].stall()
		e.await("another to lead", e.another)
		// Whoever takes the lease renews it at once. The next time is after a period.
		version := e.lease().ResourceVersion
		e.leaseUntil(patience, func(l *coordinationv1.Lease) bool { return l.ResourceVersion != version })
		e.proxies["a"].heal()
		cleared = e.leaseUntil(deadline, func(l *coordinationv1.Lease) bool {
			return *l.Spec.HolderIdentity == "" || *l.Spec.LeaseTransitions > 1
		})
		return e, cleared
	}
	t.Run("client-go", func(t *testing.T) {
		t.Parallel()
		e, cleared := script(t, "stalled-stock", stock(true, false))
		t.Logf("client-go: %s; cleared another's lease: %v", e.overlapped(), cleared)
		if e.overlapped() == "" || !cleared {
			t.Errorf("overlaps %q, cleared another's lease: %v; has client-go changed?", e.overlapped(), cleared)
		}
	})
	t.Run("this project", func(t *testing.T) {
		t.Parallel()
		if e, cleared := script(t, "stalled", product); e.overlapped() != "" || cleared {
			t.Errorf("overlaps %q, cleared another's lease: %v", e.overlapped(), cleared)
		}
	})
}

// Flaw e: the reply to a renewal is lost, the next request comes through, and then
// nothing more does.
func TestASecondTryIsARenewalToo(t *testing.T) {
	unhurried(t)
	t.Parallel()
	script := func(t *testing.T, name string, c candidate) (renewed bool, e *cluster) {
		e = newCluster(t, name, c)
		e.proxies["a"].holdReplies()
		before := e.lease()
		// One more renewal arrives whose reply does not.
		e.leaseUntil(patience, func(l *coordinationv1.Lease) bool { return l.ResourceVersion != before.ResourceVersion })
		first := e.lease()
		puts := e.proxies["a"].answered()
		e.proxies["a"].loseReplies()
		// The client gives up on it, reads, and writes again: to that it gets a reply.
		e.eventually("a second try", func() bool { return e.proxies["a"].answered() > puts })
		e.proxies["a"].stall()
		return e.lease().ResourceVersion != first.ResourceVersion, e
	}
	t.Run("client-go", func(t *testing.T) {
		t.Parallel()
		renewed, e := script(t, "second-try-stock", stock(false, true))
		e.await("another to lead", e.another)
		t.Logf("client-go: renewed by the second try: %v; %s", renewed, e.overlapped())
		if renewed {
			t.Error("the second try renewed the lease; has client-go changed?")
		}
	})
	t.Run("this project", func(t *testing.T) {
		t.Parallel()
		renewed, e := script(t, "second-try", product)
		e.await("another to lead", e.another)
		if !renewed || e.overlapped() != "" {
			t.Errorf("renewed by the second try: %v, overlaps %q", renewed, e.overlapped())
		}
	})
}
