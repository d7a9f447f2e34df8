package publish

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Group: "events.k8s.io", Resource: "events"}, "", errors.New("no"))

// TestWithoutPermission: one line in the log for each namespace, and no request twice.
func TestWithoutPermission(t *testing.T) {
	inBubble(t, func(e *telling) {
		e.server.set(func(int) error { return errForbidden })
		e.Passed(counted(), nil)
		e.every(5*time.Minute, func(i int) (*count.Snapshot, error) { return counted(names(i)...), nil })
		_, tries := e.server.seen()
		if tries < 10 {
			t.Errorf("only %d Events were tried", tries)
		}
		if n := e.logged("Events cannot be written"); n != 2 {
			t.Errorf("%d lines in the log:\n%s", n, e.log.String())
		}
		if lines := strings.Count(e.log.String(), "\n"); lines != 2 {
			t.Errorf("%d lines in the log:\n%s", lines, e.log.String())
		}
		e.server.set(nil)
		e.every(5*time.Minute, func(i int) (*count.Snapshot, error) { return counted(names(i)...), nil })
		received, more := e.server.seen()
		if e.logged("Events are written again") != 1 || len(received) != more-tries {
			t.Errorf("%d of %d tries were received:\n%s", len(received), more-tries, e.log.String())
		}
	})
}

// TestATroubledServer: an Event survives two minutes of trouble, and no more.
func TestATroubledServer(t *testing.T) {
	busy := apierrors.NewTooManyRequests("busy", 1)
	leaderless := apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
	there := apierrors.NewAlreadyExists(schema.GroupResource{}, "it")
	for name, tc := range map[string]struct {
		fail            func(try int, age time.Duration) error
		received, tries int
		logged          string
	}{
		"busy":            {func(try int, _ time.Duration) error { return map[bool]error{true: busy}[try < 4] }, 1, 4, ""},
		"without etcd":    {func(try int, _ time.Duration) error { return map[bool]error{true: leaderless}[try < 4] }, 1, 4, ""},
		"unreachable":     {func(try int, _ time.Duration) error { return map[bool]error{true: errors.New("EOF")}[try < 4] }, 1, 4, ""},
		"for 100 seconds": {func(_ int, age time.Duration) error { return map[bool]error{true: busy}[age < 100*time.Second] }, 1, 11, ""},
		"for ever":        {func(int, time.Duration) error { return busy }, 0, 11, "gave up after 2m0s"},
		"answer lost": {func(try int, _ time.Duration) error {
			return map[bool]error{true: errors.New("EOF"), false: there}[try == 1]
		}, 0, 2, ""},
		"refused": {func(int, time.Duration) error { return apierrors.NewBadRequest("no") }, 0, 1, "Events cannot be written"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(e *telling) {
				e.server.set(func(try int) error { return tc.fail(try, time.Since(e.start)) })
				e.Passed(counted(), nil)
				time.Sleep(time.Hour)
				if received, tries := e.server.seen(); len(received) != tc.received || tries != tc.tries {
					t.Errorf("%d received after %d tries, want %d after %d", len(received), tries, tc.received, tc.tries)
				}
				if got := e.log.String(); (got != "") != (tc.logged != "") || !strings.Contains(got, tc.logged) {
					t.Errorf("logged was %q, want %q", got, tc.logged)
				}
			})
		})
	}
}
