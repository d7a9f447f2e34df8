package run

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/preflight"
)

// needs is what permissions these options take. o.Namespace must be set.
func (o *Options) needs() []preflight.Need {
	lease := ""
	if o.LeaderElect.or(false) {
		lease = o.leaseName()
	}
	return preflight.Options{
		Lease:          lease,
		Namespace:      o.Namespace,
		WatchNamespace: o.WatchNamespace,
		Nodes:          o.WatchNodes,
		DRA:            true,
		Authentication: o.httpAuth() == authKubernetes,
		Events:         o.Events,
	}.Needs()
}

// Preflight finds the cluster and asks for what these options need; as another user
// unless as is "".
func Preflight(ctx context.Context, o *Options, as string) (preflight.Report, error) {
	if err := o.Validate(); err != nil {
		return preflight.Report{}, err
	}
	c, err := findCluster(o)
	if err != nil {
		return preflight.Report{}, err
	}
	if o.Namespace == "" {
		o.Namespace = c.namespace
	}
	o.LeaderElect = Choice{decided: true, yes: o.LeaderElect.or(c.inside)}
	config := tune(c.config, o)
	config.Impersonate = rest.ImpersonationConfig{UserName: as}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return preflight.Report{}, fmt.Errorf("make client: %w", err)
	}
	report, err := preflight.Ask(ctx, client, o.needs())
	report.Server = config.Host
	return report, err
}
