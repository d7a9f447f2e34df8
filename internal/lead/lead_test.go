package lead_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

// running is a Lead whose work does what the test says.
type running struct {
	*lead.Lead
	*link
	terminate context.CancelFunc
	drain     time.Duration // between the end of work's context and its return
	fail      chan error    // what work returns by itself

	done    chan struct{}
	err     error         // what Run returned
	worked  chan struct{} // closed when work has started
	term    int64
	cause   error     // why work's context ended
	stopped time.Time // when it did
}

// run starts a candidate and lets it get as far as it does at once.
func run(ctx context.Context, t *testing.T, s *server, identity string, change ...func(*running, *lead.Options)) *running {
	t.Helper()
	o := options(identity)
	r := &running{link: newLink(s, deadline/2), fail: make(chan error), done: make(chan struct{}), worked: make(chan struct{})}
	for _, c := range change {
		c(r, &o)
	}
	var err error
	if r.Lead, err = lead.New(r.link, o); err != nil {
		t.Fatal(err)
	}
	ctx, r.terminate = context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	go func() {
		defer close(r.done)
		r.err = r.Run(ctx, r.work)
	}()
	after(brief)
	return r
}

func (r *running) work(ctx context.Context, term int64) error {
	r.term = term
	close(r.worked)
	select {
	case err := <-r.fail:
		return err
	case <-ctx.Done():
	}
	r.stopped, r.cause = time.Now(), context.Cause(ctx)
	time.Sleep(r.drain)
	return ctx.Err()
}

func (r *running) has(event chan struct{}) bool {
	select {
	case <-event:
		return true
	default:
		return false
	}
}

// after lets virtual time pass and everything that is due happen.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func within(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got > want {
		t.Errorf("%s took %v, want at most %v", what, got, want)
	}
}

// leads runs a test in virtual time in which a leads.
func leads(t *testing.T, test func(t *testing.T, s *server, a *running), change ...func(*running, *lead.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		replay(1)
		s := newServer()
		a := run(t.Context(), t, s, "a", change...)
		if !a.has(a.worked) || !a.Leading() || a.Holder() != "a" {
			t.Fatal("a does not lead")
		}
		test(t, s, a)
		a.terminate()
		<-a.done
	})
}
