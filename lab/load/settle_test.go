package load

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestWait(t *testing.T) {
	for name, tc := range map[string]struct {
		left   func(since time.Duration) int
		want   string
		within time.Duration
	}{
		"nothing to wait for":  {func(time.Duration) int { return 0 }, "<nil>", 0},
		"slow but moving":      {func(d time.Duration) int { return max(0, 10-int(d/(50*time.Second))) }, "<nil>", 501 * time.Second},
		"stuck from the start": {func(time.Duration) int { return 3 }, "wait for it: 3 left and no change for 1m0s", 61 * time.Second},
		"stuck in the middle":  {func(d time.Duration) int { return max(5, 10-int(d/(10*time.Second))) }, "wait for it: 5 left and no change for 1m0s", 111 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, start := &loader{o: Options{Patience: time.Minute}}, time.Now()
				err := l.wait(t.Context(), "it", func(context.Context) (int, error) { return tc.left(time.Since(start)), nil })
				if fmt.Sprint(err) != tc.want {
					t.Errorf("got %v, want %s", err, tc.want)
				}
				if took := time.Since(start); took > tc.within || took < tc.within-time.Second {
					t.Errorf("took %s, want %s", took, tc.within)
				}
			})
		})
	}
}

func TestWaitIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		time.AfterFunc(time.Second, func() { cancel(enough) })
		l, start := &loader{o: Options{Patience: time.Minute}}, time.Now()
		err := l.wait(ctx, "it", func(context.Context) (int, error) { return 1, nil })
		if !errors.Is(err, enough) || time.Since(start) != time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})
}
