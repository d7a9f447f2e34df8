package run

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/lead"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// Options is the whole configuration. Each field but the last is a flag.
type Options struct {
	Kubeconfig string
	Context    string
	QPS        float32
	Burst      int
	// Compression asks the API server for gzip.
	Compression bool

	GPUResources     []string
	DRAClasses       []string
	WatchNamespace   string
	PodSelector      string
	WatchNodes       bool
	Resync           time.Duration
	CacheSyncTimeout time.Duration

	Namespace      string
	Name           string
	Resources      []string
	CapacityName   string
	MaxObjectBytes int
	Settle         time.Duration

	// Events are written when a state changes; a node's state has to last for
	// EventDelay.
	Events     bool
	EventDelay time.Duration

	// LeaderElect decides whether a lease is held while publishing; in a cluster it
	// is, elsewhere not, unless somebody says.
	LeaderElect   Choice
	LeaseName     string // "" for <Name>-controller
	LeaseDuration time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration

	HTTPAddress string
	// HTTPAuth is who may read: none, kubernetes, or "" for none on loopback and
	// kubernetes elsewhere.
	HTTPAuth       string
	HTTPAudiences  []string
	TLSCertFile    string
	TLSKeyFile     string
	Profiling      bool
	MetricsPerNode bool

	// Serving, if set, is told the address of the HTTP server before anything else
	// starts. Whoever asked for port 0 has no other way to know it.
	Serving func(address string)
}

// DefaultOptions returns what runs without a flag.
func DefaultOptions() *Options {
	return &Options{
		QPS:              50,
		Burst:            100,
		WatchNodes:       true,
		Resync:           10 * time.Minute,
		CacheSyncTimeout: time.Minute,
		Name:             "gpu-summary",
		CapacityName:     "gpu-capacity",
		MaxObjectBytes:   publish.DefaultMaxObjectBytes,
		Settle:           time.Second,
		Events:           true,
		EventDelay:       publish.DefaultEventDelay,
		LeaseDuration:    lead.DefaultLeaseDuration,
		RenewDeadline:    lead.DefaultRenewDeadline,
		RetryPeriod:      lead.DefaultRetryPeriod,
		HTTPAddress:      "127.0.0.1:8080",
		MetricsPerNode:   true,
	}
}

// AddFlags binds the options to flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig `file`; without it and without --context the cluster this pod runs in, then $KUBECONFIG, then ~/.kube/config")
	fs.StringVar(&o.Context, "context", o.Context, "kubeconfig context to use instead of the current one")
	fs.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "requests per second to the API server, negative for no limit on our side")
	fs.IntVar(&o.Burst, "kube-api-burst", o.Burst, "requests that may exceed --kube-api-qps at once")
	fs.BoolVar(&o.Compression, "kube-api-compression", o.Compression, "ask the API server for compressed answers: a tenth of the bytes at a start, for several times the CPU time")

	fs.StringArrayVar(&o.GPUResources, "gpu-resource", o.GPUResources, "count this extended `resource` too, example.com/gpu or a pattern that ends in *, example.com/gpu-*; repeatable")
	fs.StringArrayVar(&o.DRAClasses, "dra-class", o.DRAClasses, "count devices of this DeviceClass as this GPU resource, `class=resource`, gpu.example.com=example.com/gpu; repeatable")
	fs.StringVar(&o.WatchNamespace, "watch-namespace", o.WatchNamespace, "count only pods in this `namespace` (default all)")
	fs.StringVar(&o.PodSelector, "pod-selector", o.PodSelector, "count only pods with these labels, as in kubectl -l")
	fs.BoolVar(&o.WatchNodes, "watch-nodes", o.WatchNodes, "watch nodes; without them there is no allocatable, and rows follow the pods alone")
	fs.DurationVar(&o.Resync, "resync", o.Resync, "how often a pass is made with no event to ask for it, from the cache, without asking the API server; 0 for never")
	fs.DurationVar(&o.CacheSyncTimeout, "cache-sync-timeout", o.CacheSyncTimeout, "how long the caches may take to fill before the controller gives up and says why")

	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of the published ConfigMaps (default the pod's own, else the kubeconfig context's)")
	fs.StringVar(&o.Name, "name", o.Name, "name of the ConfigMap that shows "+count.NVIDIA+"; controllers in one namespace need different ones")
	fs.StringArrayVar(&o.Resources, "resource", o.Resources, "show this GPU `resource` too, in a ConfigMap of its own called <name>.<resource>, with / as .; repeatable")
	fs.StringVar(&o.CapacityName, "capacity-name", o.CapacityName, "name of the ConfigMap that shows everything as JSON, empty for none")
	fs.IntVar(&o.MaxObjectBytes, "max-object-bytes", o.MaxObjectBytes, "size from which on the rows of a ConfigMap move into several")
	fs.DurationVar(&o.Settle, "settle", o.Settle, "least time between two writes; a change after quiet is written at once")

	fs.BoolVar(&o.Events, "events", o.Events, "write Events when nodes become overcommitted or publishing does not go on, and when that is over")
	fs.DurationVar(&o.EventDelay, "event-delay", o.EventDelay, "how long a node has to be overcommitted, or right again, before there is an Event")

	fs.Var(&o.LeaderElect, "leader-elect", "publish only while holding a lease, so that several replicas can run (default true in a cluster, false elsewhere)")
	fs.Lookup("leader-elect").NoOptDefVal = "true"
	fs.StringVar(&o.LeaseName, "leader-elect-resource-name", o.LeaseName, "name of the Lease, in the namespace of the ConfigMaps (default <name>-controller)")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", o.LeaseDuration, "how long others wait after the last renewal before they take over")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", o.RenewDeadline, "how long after the last renewal the leader may go on")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", o.RetryPeriod, "pause between two attempts to renew or to take over")

	fs.StringVar(&o.HTTPAddress, "http-address", o.HTTPAddress, "`host:port` of the page, /api/v1/, /metrics, /livez and /readyz; port 0 for any that is free")
	fs.StringVar(&o.HTTPAuth, "http-auth", o.HTTPAuth, "`who` may read over HTTP, /livez and /readyz aside: kubernetes, who has a token and the right to get the path, over TLS; or none, which is everybody (default none on a loopback address, kubernetes on any other)")
	fs.StringArrayVar(&o.HTTPAudiences, "http-auth-audience", o.HTTPAudiences, "`audience` that readers' tokens are for, so that they are of no use elsewhere (default that of the API server); repeatable")
	fs.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile, "`file` with the certificate to serve HTTP with, read again when it changes (default one that is made at the start, where tokens are asked for)")
	fs.StringVar(&o.TLSKeyFile, "tls-private-key-file", o.TLSKeyFile, "`file` with its key")
	fs.BoolVar(&o.Profiling, "profiling", o.Profiling, "serve /debug/pprof/ too")
	fs.BoolVar(&o.MetricsPerNode, "metrics-per-node", o.MetricsPerNode, "serve the series of single nodes, six for each node and resource")
}

// names is what counts as a GPU: the names known to be one and those that the
// flags add.
func (o *Options) names() (count.Names, error) {
	return count.ParseNames(append(count.DefaultNames(), o.GPUResources...)...)
}

// Validate reports every value that cannot work, each with its flag.
func (o *Options) Validate() error {
	var errs []error
	bad := func(flag string, value any, why string) {
		errs = append(errs, fmt.Errorf("--%s=%v: %s", flag, value, why))
	}
	names, err := o.names()
	if err != nil {
		bad("gpu-resource", o.GPUResources, err.Error())
	}
	if _, err := o.draClasses(names); err != nil {
		bad("dra-class", o.DRAClasses, err.Error())
	}
	o.checkPublished(names, bad)
	if o.Namespace != "" {
		for _, problem := range validation.IsDNS1123Label(o.Namespace) {
			bad("namespace", o.Namespace, problem)
		}
	}
	if o.WatchNamespace != "" {
		for _, problem := range validation.IsDNS1123Label(o.WatchNamespace) {
			bad("watch-namespace", o.WatchNamespace, problem)
		}
	}
	if _, err := labels.Parse(o.PodSelector); err != nil {
		bad("pod-selector", o.PodSelector, err.Error())
	}
	if o.Settle < 0 {
		bad("settle", o.Settle, "must not be negative")
	}
	if o.EventDelay < 0 {
		bad("event-delay", o.EventDelay, "must not be negative")
	}
	if o.Resync < 0 {
		bad("resync", o.Resync, "must not be negative")
	}
	if o.CacheSyncTimeout <= 0 {
		bad("cache-sync-timeout", o.CacheSyncTimeout, "must be above zero: a cache that never fills would be waited for in silence")
	}
	if o.QPS == 0 {
		bad("kube-api-qps", o.QPS, "must not be zero (negative means no limit)")
	}
	if o.QPS > 0 && o.Burst < 1 {
		bad("kube-api-burst", o.Burst, "must be at least 1")
	}
	if err := o.lease("").Validate(); err != nil {
		errs = append(errs, err)
	}
	if _, _, err := net.SplitHostPort(o.HTTPAddress); err != nil {
		bad("http-address", o.HTTPAddress, err.Error())
	}
	o.checkAccess(bad)
	return errors.Join(errs...)
}
