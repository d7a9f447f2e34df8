package lead

import (
	"errors"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
)

// The times that Kubernetes' own components use. A leader that dies is replaced
// after the first, and up to two retries of 2.2 periods.
const (
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// Options say which Lease is contended for, by whom, and how fast.
type Options struct {
	// Namespace and Name are those of the Lease.
	Namespace, Name string
	// Identity must be another one for each start of a process: whoever finds its
	// own name in a Lease goes on where it left off, in the same term.
	Identity string

	// LeaseDuration is how long the others wait after the last renewal they saw.
	LeaseDuration time.Duration
	// RenewDeadline is how long after the last renewal work may go on. What is left
	// of LeaseDuration, less a second, is the time that work has to return.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between two attempts, to renew or to take over.
	RetryPeriod time.Duration

	// OnNewLeader, if set, is told each new holder, "" when the lease was given back.
	// It is called between two requests of the election and must not block.
	OnNewLeader func(identity string)
	// MinTerm, if set, returns the lowest term that will do. A Lease that somebody
	// deleted starts again at 0, and what was written under it would be refused for
	// as long as a higher term is published.
	MinTerm func() int64
}

// Validate reports every value that cannot work, each with its flag.
func (o Options) Validate() error {
	var errs []error
	bad := func(flag string, value any, why string) {
		errs = append(errs, fmt.Errorf("--leader-elect-%s=%v: %s", flag, value, why))
	}
	for _, problem := range validation.IsDNS1123Subdomain(o.Name) {
		bad("resource-name", o.Name, problem)
	}
	// A Lease holds whole seconds. With 15.9 the others would wait 15.
	if o.LeaseDuration < time.Second || o.LeaseDuration%time.Second != 0 || o.LeaseDuration > math.MaxInt32*time.Second {
		bad("lease-duration", o.LeaseDuration, "must be whole seconds, at least one")
	}
	// The others tell renewals apart by the second, and so may have seen the last
	// one up to a second before it was made.
	if o.LeaseDuration-o.RenewDeadline < time.Second {
		bad("renew-deadline", o.RenewDeadline,
			fmt.Sprintf("must be at least 1s below --leader-elect-lease-duration=%v, and more by as long as work may take to end", o.LeaseDuration))
	}
	if o.RetryPeriod <= 0 {
		bad("retry-period", o.RetryPeriod, "must be above zero")
	} else if longest := time.Duration(leaderelection.JitterFactor * float64(o.RetryPeriod)); o.RenewDeadline <= longest {
		bad("renew-deadline", o.RenewDeadline,
			fmt.Sprintf("must be above %v, which is %v times --leader-elect-retry-period=%v", longest, leaderelection.JitterFactor, o.RetryPeriod))
	}
	return errors.Join(errs...)
}

// ClientConfig returns a configuration for requests about the Lease and nothing
// else. Three things are its own:
//
// Its timeout, so that one request that hangs leaves time for another before the
// lease is lost. Its rate limiter, which is none, so that no other traffic can use
// up its turn. And its connection: all clients of a process share one per server,
// through HTTP/2, and once that is dead every request on it times out until a ping
// finds out, 45 seconds later. Over HTTP/1.1 a request that timed out takes its
// connection with it, and the next one dials anew.
func ClientConfig(config *rest.Config, renewDeadline time.Duration) *rest.Config {
	c := rest.CopyConfig(config)
	if c.UserAgent == "" {
		c.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	c.UserAgent += "/leader-election" // to tell them apart in audit logs
	c.Timeout = renewDeadline / 2
	c.QPS, c.RateLimiter = -1, nil
	c.NextProtos = []string{"http/1.1"}
	return c
}
