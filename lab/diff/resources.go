package diff

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// gpus are the resources that must be counted. The list is written out here once
// more, and not taken from internal/count, so that a name that is missing there, or
// a pattern that takes too much, is a mismatch (N6).
var gpus = []corev1.ResourceName{
	"nvidia.com/gpu", "nvidia.com/gpu.shared",
	"nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb", "nvidia.com/mig-1g.10gb.me", "nvidia.com/mig-1g.12gb.shared",
	"amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi", "google.com/tpu", "aws.amazon.com/neuron",
}

// lookAlikes are named like GPUs and count memory, cores or something else.
var lookAlikes = []corev1.ResourceName{
	"nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpumem-percentage", "nvidia.com/migs", "requests.nvidia.com/gpu",
	"amd.com/gpu-memory", "gpu.intel.com/i915_monitoring", "aws.amazon.com/neuroncore", "aliyun.com/gpu-mem", "example.com/gpu",
	corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com"),
}

// others are what every pod has besides.
var others = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceHugePagesPrefix + "2Mi",
}

var isGPU = func() map[corev1.ResourceName]bool {
	set := map[corev1.ResourceName]bool{}
	for _, name := range gpus {
		set[name] = true
	}
	return set
}()

// Quantities that are no plain small number. All of them decode.
var (
	oddities = quantities(
		"0", "1", "8", "16", "1500m", "500m", "1m", "1u", "1n", "0.5", "2.5", "1.0", ".5", "007", "+3", "1e3", "1E3", "25e-1",
		"1k", "1Ki", "1.5Ki", "0.5Ki", "1M", "1Mi", "12345678901", "0.000000001", "-1", "-2", "-0.5", "-1500m", "-1Ki",
	)
	enormous = quantities(
		"9223372036854775807", "9223372036854775806", "9223372036854775806.5", "9223372036854775807m", "4611686018427387904",
		"9223372036854775808", "18446744073709551615", "7Ei", "8Ei", "12Ei", "9E", "10E", "1e18", "1e19", "1e30",
		"-9223372036854775807", "-9223372036854775808", "-9E", "-1e19",
	)
)

func quantities(texts ...string) []resource.Quantity {
	var out []resource.Quantity
	for _, text := range texts {
		out = append(out, resource.MustParse(text))
	}
	return out
}
