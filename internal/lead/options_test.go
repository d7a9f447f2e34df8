package lead_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
)

func TestValidate(t *testing.T) {
	with := func(change func(*lead.Options)) lead.Options {
		o := options("a")
		change(&o)
		return o
	}
	times := func(duration, deadline, period time.Duration) lead.Options {
		return with(func(o *lead.Options) { o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = duration, deadline, period })
	}
	const s, ms = time.Second, time.Millisecond
	for _, test := range []struct {
		what    string
		options lead.Options
		want    []string // in the error; none is no error
	}{
		{"the defaults", options("a"), nil},
		{"fast ones", times(10*s, 6*s, s), nil},
		{"the fastest", times(2*s, s, 800*ms), nil},
		{"no name", with(func(o *lead.Options) { o.Name = "" }), []string{"--leader-elect-resource-name="}},
		{"an impossible name", with(func(o *lead.Options) { o.Name = "GPU" }), []string{"--leader-elect-resource-name=GPU"}},
		{"fractions of a second", times(15900*ms, 10*s, 2*s), []string{"--leader-elect-lease-duration=15.9s: must be whole seconds"}},
		{"no duration", times(0, 10*s, 2*s), []string{"--leader-elect-lease-duration=0s", "--leader-elect-renew-deadline=10s"}},
		{"more seconds than a Lease holds", times((math.MaxInt32+1)*s, 10*s, 2*s), []string{"--leader-elect-lease-duration="}},
		{"a deadline after the lease", times(15*s, 15*s, 2*s), []string{"--leader-elect-renew-deadline=15s: must be at least 1s below --leader-elect-lease-duration=15s"}},
		{"a deadline too close to it", times(15*s, 14001*ms, 2*s), []string{"--leader-elect-renew-deadline=14.001s"}},
		{"a retry that comes too late", times(15*s, 10*s, 9*s), []string{"--leader-elect-renew-deadline=10s: must be above 10.8s, which is 1.2 times --leader-elect-retry-period=9s"}},
		{"a retry that may come too late", times(15*s, 12*s, 10*s), []string{"must be above 12s"}},
		{"no pause", times(15*s, 10*s, 0), []string{"--leader-elect-retry-period=0s: must be above zero"}},
		{"nothing right", times(500*ms, s, -s), []string{"lease-duration=500ms", "renew-deadline=1s", "retry-period=-1s"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			err := test.options.Validate()
			if (err == nil) != (test.want == nil) {
				t.Fatalf("the error is %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			// What passes here, client-go takes too.
			if _, err := lead.New(newLink(newServer(), 0), test.options); (err == nil) != (test.want == nil) {
				t.Errorf("New says %v", err)
			}
		})
	}
}

func TestNewWantsToKnowWhoAndWhere(t *testing.T) {
	for _, change := range []func(*lead.Options){
		func(o *lead.Options) { o.Identity = "" },
		func(o *lead.Options) { o.Namespace = "" },
	} {
		o := options("a")
		change(&o)
		if _, err := lead.New(newLink(newServer(), 0), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestNoTwoProcessesHaveTheSameIdentity(t *testing.T) {
	one, err := lead.Identity()
	if err != nil {
		t.Fatal(err)
	}
	if other, _ := lead.Identity(); one == other || one == "" {
		t.Errorf("identities %q and %q", one, other)
	}
}
