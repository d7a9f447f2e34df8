package lead_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

// TestStatus follows a leader and a standby until the leader cannot renew any more.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		start := time.Now()
		a := run(t.Context(), t, s, "a")
		b := run(t.Context(), t, s, "b")
		after(time.Second)
		got := a.Status()
		if !got.Leading || got.Holder != "a" || got.Identity != "a" || got.Term != a.term || got.Renewed.Before(start) || got.Lost != nil || got.RenewDeadline != deadline {
			t.Errorf("the leader: %+v", got)
		}
		if got := b.Status(); got.Leading || got.Holder != "a" || got.Term != 0 || !got.Renewed.IsZero() || got.Lost != nil {
			t.Errorf("the standby: %+v", got)
		}
		cut(a)
		after(deadline)
		if got := a.Status(); got.Leading || !errors.Is(got.Lost, lead.ErrLost) {
			t.Errorf("after the loss: %+v", got)
		}
		b.terminate()
		<-b.done
	})
}
