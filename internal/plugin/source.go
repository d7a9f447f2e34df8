package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/gather"
	"github.com/gpu-summary/gpu-summary-controller/internal/version"
)

// protobuf is half the size of JSON and a third of the work to decode.
const protobuf = "application/vnd.kubernetes.protobuf"

// client finds the cluster that the flags and the kubeconfig name.
func (c *common) client() (kubernetes.Interface, error) {
	if c.nowhere() {
		return nil, errors.New("no cluster found: not in a pod, and neither --server, --kubeconfig, KUBECONFIG nor ~/.kube/config names one (--from reads a dump instead)")
	}
	config, err := c.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	config.ContentType = protobuf
	config.AcceptContentTypes = protobuf + ",application/json"
	config.UserAgent = "kubectl-gpu_summary/" + version.String()
	config.QPS = -1 // one request follows the other; there is nothing to hold back
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}

// nowhere reports whether nothing says which cluster it is. What kubectl does then is to
// try port 8080 of this machine, and to say no more than that nobody answers.
func (c *common) nowhere() bool {
	kubeconfig, err := c.config.ToRawKubeConfigLoader().RawConfig()
	_, inside := rest.InClusterConfig()
	return err == nil && len(kubeconfig.Clusters) == 0 && *c.config.APIServer == "" && errors.Is(inside, rest.ErrNotInCluster)
}

// names is what counts as a GPU: the names known to be one and those that the flags
// add.
func (c *common) names() (count.Names, error) {
	names, err := count.ParseNames(append(count.DefaultNames(), c.gpuResources...)...)
	if err != nil {
		return names, fmt.Errorf("--gpu-resource: %w", err)
	}
	return names, nil
}

// classes is what DeviceClasses count as: those that vendors' drivers come with and
// those that the flags add or change.
func (c *common) classes(names count.Names) (map[string]string, error) {
	classes := count.DefaultDRAClasses()
	for _, entry := range c.draClasses {
		class, resource, ok := strings.Cut(entry, "=")
		switch problems := validation.IsDNS1123Subdomain(class); {
		case !ok:
			return nil, fmt.Errorf("--dra-class=%s: want class=resource, as in gpu.example.com=example.com/gpu", entry)
		case len(problems) > 0:
			return nil, fmt.Errorf("--dra-class=%s: not the name of a class: %s", entry, strings.Join(problems, "; "))
		case !names.Match(resource):
			return nil, fmt.Errorf("--dra-class=%s: %s is not counted as a GPU (--gpu-resource=%s would make it one)", entry, resource, resource)
		}
		classes[class] = resource
	}
	return classes, nil
}

// gather tells the visitor of the objects of the cluster, or of the dump that --from
// names. Of a dump, too, only what is in the scope is told.
func (c *common) gather(ctx context.Context, scope gather.Scope, v gather.Visitor) (gather.Report, error) {
	if c.fromConfigMap != "" {
		return gather.Report{}, errors.New("this needs pods, which the published ConfigMaps do not have: leave out --from-configmap")
	}
	if c.from != "" {
		return c.gatherFile(ctx, narrow{scope, v})
	}
	client, err := c.connect()
	if err != nil {
		return gather.Report{}, err
	}
	report, err := gather.Cluster(ctx, client, scope, v)
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w\n%s", err, wayOut)
	}
	return report, err
}

// wayOut says what is left to somebody who may not list what is to be counted.
const wayOut = `Without that permission, "pods -n NAMESPACE" and "pending -n NAMESPACE" show the pods of a namespace in which they
may be listed, and "nodes --from-configmap -n NAMESPACE" shows what the gpu-summary controller has published there:
the right to get its ConfigMaps is enough.`

func (c *common) gatherFile(ctx context.Context, v gather.Visitor) (gather.Report, error) {
	if c.from == "-" {
		return gather.File(ctx, c.dump(), c.In, v)
	}
	f, err := os.Open(c.from)
	if err != nil {
		return gather.Report{}, fmt.Errorf("--from: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	return gather.File(ctx, c.dump(), f, v)
}

// dump is what --from names, in messages.
func (c *common) dump() string {
	if c.from == "-" {
		return "standard input"
	}
	return c.from
}

// notes says what a reading left out.
func notes(r gather.Report) []string {
	var out, forbidden []string
	for _, err := range r.Missing {
		// What somebody may not see, they will be told with every command.
		if status := (apierrors.APIStatus)(nil); apierrors.IsForbidden(err) && errors.As(err, &status) && status.Status().Details != nil {
			forbidden = append(forbidden, status.Status().Details.Kind)
		} else {
			out = append(out, err.Error())
		}
	}
	if len(forbidden) > 0 {
		out = append(out, "you may not list "+strings.Join(forbidden, ", ")+", and what follows from them is not in the answer")
	}
	for _, err := range r.Broken {
		out = append(out, "left out: "+err.Error())
	}
	if more := r.BrokenTotal - len(r.Broken); more > 0 {
		out = append(out, fmt.Sprintf("left out: %d more objects that cannot be read", more))
	}
	if len(r.Ignored) > 0 {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(r.Ignored)) {
			kinds = append(kinds, fmt.Sprintf("%d %s", r.Ignored[kind], kind))
		}
		out = append(out, "not looked at: "+strings.Join(kinds, ", "))
	}
	return out
}

// namespace is where -n or the context says to be.
func (c *common) namespace() (string, error) {
	namespace, _, err := c.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("load kubeconfig: %w", err)
	}
	return cmp.Or(namespace, "default"), nil
}

// only is the namespace that -n restricts to, "" for all: GPUs are shared by the whole
// cluster, so that the context's namespace alone would seldom be the answer.
func (c *common) only() string { return *c.config.Namespace }
