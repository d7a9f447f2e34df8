package serve_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve.NewProgress("a pass has been running", 5*time.Minute)
		healthy := func(when string) {
			t.Helper()
			if err := p.Check(); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		healthy("before anything began")
		p.Begin()
		time.Sleep(5 * time.Minute)
		healthy("at the bound")
		time.Sleep(time.Nanosecond)
		if err := p.Check(); err == nil || err.Error() != "a pass has been running for 5m0s, which is longer than 5m0s" {
			t.Errorf("beyond the bound: %v", err)
		}
		p.End()
		healthy("after the end")
		time.Sleep(24 * time.Hour)
		healthy("after a day without work")

		// A lease that is renewed begins again and again without an end.
		for range 10 {
			p.Begin()
			time.Sleep(4 * time.Minute)
			healthy("between two renewals")
		}
		time.Sleep(2 * time.Minute)
		if p.Check() == nil {
			t.Error("six minutes after the last renewal all is well")
		}
	})
}
