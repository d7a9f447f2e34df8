package count

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// NVIDIA is the GPU resource of NVIDIA's device plugin and the one that the
// ConfigMap gpu-summary shows.
const NVIDIA = "nvidia.com/gpu"

// defaultNames are the resources that vendors' device plugins use for whole
// devices, for partitions of devices and for shared ones. Neuron cores are left
// out: a core is a part of a chip that aws.amazon.com/neuron already counts.
var defaultNames = []string{
	NVIDIA, "nvidia.com/gpu.shared", "nvidia.com/mig-*",
	"amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi",
	"google.com/tpu", "aws.amazon.com/neuron",
}

// Names decides which resources are GPUs (N6). It is an allow-list of whole names
// and of patterns that end in "*". The zero value allows nothing.
type Names struct {
	exact    map[string]bool
	prefixes []string
}

// DefaultNames returns the names that are counted without being asked to.
func DefaultNames() []string { return slices.Clone(defaultNames) }

// ParseNames makes an allow-list. Each entry is an extended resource name as it
// stands in a pod's requests, "example.com/gpu", or a pattern that ends in "*",
// "nvidia.com/mig-*". A pattern has to name more than the domain: nvidia.com/*
// would take nvidia.com/gpumem, which counts megabytes. The error names every bad
// entry.
func ParseNames(entries ...string) (Names, error) {
	n := Names{exact: make(map[string]bool)}
	var errs []error
	for _, entry := range entries {
		prefix, pattern := strings.CutSuffix(entry, "*")
		if err := checkName(prefix, pattern); err != nil {
			errs = append(errs, fmt.Errorf("GPU resource %q: %w", entry, err))
			continue
		}
		if pattern {
			n.prefixes = append(n.prefixes, prefix)
		} else {
			n.exact[entry] = true
		}
	}
	return n, errors.Join(errs...)
}

func checkName(name string, pattern bool) error {
	domain, rest, ok := strings.Cut(name, "/")
	switch {
	case !ok:
		return errors.New("want domain/name, as in example.com/gpu")
	case strings.Contains(name, "*"):
		return errors.New(`"*" may only stand at the end`)
	case pattern && rest == "":
		return errors.New("a pattern has to name more than the domain")
	case strings.HasPrefix(domain, "requests."):
		return errors.New("that is how quotas name a resource, not how pods do")
	case strings.Contains(domain, "kubernetes.io"):
		return errors.New("names under kubernetes.io are not device resources")
	}
	if pattern {
		name += "x" // what the pattern stands for may begin where it ends, as mig- does
	}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return errors.New("not a resource name: " + strings.Join(problems, "; "))
	}
	return nil
}

// Evidence lists texts of the form domain/rest, one of which is in the name of every
// resource that ReadPod or ReadNode keeps. An object in which none of them occurs,
// anywhere, asks for no GPU and has none.
func (n Names) Evidence() []string {
	return slices.Concat(slices.Sorted(maps.Keys(n.exact)), n.prefixes, []string{implicitPrefix})
}

// Match reports whether a resource is a GPU.
func (n Names) Match(resource string) bool {
	if n.exact[resource] {
		return true
	}
	for _, prefix := range n.prefixes {
		if len(resource) > len(prefix) && strings.HasPrefix(resource, prefix) {
			return true
		}
	}
	return false
}
