package count_test

import (
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestNames: N6.
func TestNames(t *testing.T) {
	n, err := count.ParseNames(append(count.DefaultNames(), "example.com/npu", "example.com/slice-*")...)
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]bool{
		"nvidia.com/gpu": true, "nvidia.com/gpu.shared": true, "nvidia.com/mig-1g.5gb": true, "nvidia.com/mig-1g.10gb.shared": true,
		"nvidia.com/mig-1g.10gb.me": true, "amd.com/gpu": true, "habana.ai/gaudi": true, "google.com/tpu": true, "aws.amazon.com/neuron": true,
		"gpu.intel.com/i915": true, "gpu.intel.com/xe": true, "example.com/npu": true, "example.com/slice-2": true,
		"nvidia.com/gpumem": false, "nvidia.com/gpucores": false, "nvidia.com/gpumem-percentage": false, "aliyun.com/gpu-mem": false,
		"aws.amazon.com/neuroncore": false, "gpu.intel.com/i915_monitoring": false, "nvidia.com/mig-": false, "example.com/slice": false,
		"requests.nvidia.com/gpu": false, "cpu": false, "": false,
	} {
		if n.Match(resource) != want {
			t.Errorf("%q is a GPU: %v, want %v", resource, !want, want)
		}
	}
}

func TestBadNamesAreRefusedEachByName(t *testing.T) {
	for entry, why := range map[string]string{
		"gpu":                "want domain/name",
		"*":                  "want domain/name",
		"nvidia.com/*":       "more than the domain",
		"nvidia.com/*-gpu":   "only stand at the end",
		"*.com/gpu":          "only stand at the end",
		"nvidia.com/":        "not a resource name",
		"nvidia.com/a/b":     "not a resource name",
		"NVIDIA .com/gpu":    "not a resource name",
		"kubernetes.io/x":    "not device resources",
		"a.kubernetes.io/x*": "not device resources",
		"requests.a.com/gpu": "how quotas name",
	} {
		_, err := count.ParseNames("example.com/ok", entry)
		if err == nil || !strings.Contains(err.Error(), `"`+entry+`"`) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v; want the entry named and %q", entry, err, why)
		}
	}
}
