package run

import (
	"context"
	"fmt"
	"strconv"

	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/internal/watch"
)

// Choice is a flag that is true, false, or not decided. It implements pflag.Value.
type Choice struct{ decided, yes bool }

// String is what a help text shows as the default.
func (c *Choice) String() string {
	if c == nil || !c.decided {
		return ""
	}
	return strconv.FormatBool(c.yes)
}

// Set decides.
func (c *Choice) Set(text string) error {
	yes, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("want true or false")
	}
	c.decided, c.yes = true, yes
	return nil
}

// Type is what a help text calls the value.
func (c *Choice) Type() string { return "bool" }

// or is what was decided, or what holds otherwise.
func (c *Choice) or(otherwise bool) bool {
	if c.decided {
		return c.yes
	}
	return otherwise
}

// leaseName is the Lease that is contended for. Controllers that publish under other
// names have others.
func (o *Options) leaseName() string {
	if o.LeaseName != "" {
		return o.LeaseName
	}
	return o.Name + "-controller"
}

// lease says which Lease is contended for, and how.
func (o *Options) lease(identity string) lead.Options {
	return lead.Options{
		Namespace: o.Namespace, Name: o.leaseName(), Identity: identity,
		LeaseDuration: o.LeaseDuration, RenewDeadline: o.RenewDeadline, RetryPeriod: o.RetryPeriod,
	}
}

// leadership is what decides whether this replica publishes: a lease, or nothing at
// all, which always says yes.
type leadership struct{ *lead.Lead }

// newLeadership prepares to contend for the lease, if that is asked for.
func newLeadership(ctx context.Context, config *rest.Config, o *Options, informers *watch.Watch) (leadership, error) {
	if !o.LeaderElect.or(false) {
		return leadership{}, nil
	}
	client, err := coordinationv1client.NewForConfig(lead.ClientConfig(config, o.RenewDeadline))
	if err != nil {
		return leadership{}, fmt.Errorf("make client for the lease: %w", err)
	}
	identity, err := lead.Identity()
	if err != nil {
		return leadership{}, err
	}
	options := o.lease(identity)
	options.OnNewLeader = func(holder string) {
		if holder != identity {
			klog.FromContext(ctx).Info("New leader", "lease", options.Name, "holder", holder)
		}
	}
	// A Lease that was deleted starts over. What was published under the old one would
	// fence us for good.
	options.MinTerm = func() int64 {
		least := int64(1)
		for _, cm := range informers.AllPublished() {
			least = max(least, publish.Term(cm)+1)
		}
		return least
	}
	l, err := lead.New(client, options)
	if err != nil {
		return leadership{}, err
	}
	klog.FromContext(ctx).Info("Contending for the lease", "namespace", options.Namespace, "lease", options.Name, "identity", identity)
	return leadership{l}, nil
}

// run calls work while it is our turn; without election at once and in term 0.
func (l leadership) run(ctx context.Context, work func(ctx context.Context, term int64) error) error {
	if l.Lead == nil {
		return work(ctx, 0)
	}
	return l.Run(ctx, work)
}

// leading reports whether it is our turn.
func (l leadership) leading() bool { return l.Lead == nil || l.Leading() }

// health fails when work goes on under a lease that is not renewed.
func (l leadership) health(o *Options) error {
	if l.Lead == nil {
		return nil
	}
	return l.Health(2 * o.LeaseDuration)
}
