package run

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// publication is the part of the options that says what is published.
func (o *Options) publication() publish.Options {
	return publish.Options{
		Namespace: o.Namespace, Name: o.Name, Resources: o.Resources,
		CapacityName: o.CapacityName, MaxObjectBytes: o.MaxObjectBytes,
	}
}

// published names the ConfigMaps that a reader starts from.
func (o *Options) published() []string {
	names := []string{o.Name}
	for _, resource := range o.Resources {
		names = append(names, publish.SummaryName(o.Name, resource))
	}
	if o.CapacityName != "" {
		names = append(names, o.CapacityName)
	}
	return names
}

const (
	// longestBase leaves room for the end of a shard's name, "-shard-0001".
	longestBase = validation.DNS1123SubdomainMaxLength - len("-shard-0001")
	// smallestObject still holds a row with the longest name there is.
	smallestObject = 1 << 10
)

var shardSuffix = regexp.MustCompile(`-shard-\d+$`)

// checkPublished reports what cannot be published, or not beside each other.
func (o *Options) checkPublished(names count.Names, bad func(flag string, value any, why string)) {
	taken := map[string]string{}
	take := func(flag, value, name string) {
		problems := validation.IsDNS1123Subdomain(name)
		switch {
		case len(problems) > 0:
			bad(flag, value, fmt.Sprintf("ConfigMap %q: %s", name, strings.Join(problems, "; ")))
		case len(name) > longestBase:
			bad(flag, value, fmt.Sprintf("ConfigMap %q: must be no more than %d characters", name, longestBase))
		case shardSuffix.MatchString(name):
			bad(flag, value, fmt.Sprintf("ConfigMap %q: a name that ends like this is that of a shard", name))
		case taken[name] != "":
			bad(flag, value, fmt.Sprintf("ConfigMap %q is also that of %s", name, taken[name]))
		}
		taken[name] = fmt.Sprintf("--%s=%s", flag, value)
	}
	take("name", o.Name, o.Name)
	if len(o.Name) > validation.LabelValueMaxLength {
		bad("name", o.Name, fmt.Sprintf("must be no more than %d characters: it is the value of a label", validation.LabelValueMaxLength))
	}
	for _, resource := range o.Resources {
		switch {
		case strings.Contains(resource, "*"):
			bad("resource", resource, "a ConfigMap shows one resource, not a pattern")
		case !names.Match(resource):
			bad("resource", resource, "is not counted as a GPU (--gpu-resource="+resource+" would make it one)")
		default:
			take("resource", resource, publish.SummaryName(o.Name, resource))
		}
	}
	if o.CapacityName != "" {
		take("capacity-name", o.CapacityName, o.CapacityName)
	}
	if o.MaxObjectBytes < smallestObject || o.MaxObjectBytes > publish.DefaultMaxObjectBytes {
		bad("max-object-bytes", o.MaxObjectBytes, fmt.Sprintf("must be from %d to %d, so that every object fits into etcd", smallestObject, publish.DefaultMaxObjectBytes))
	}
}
