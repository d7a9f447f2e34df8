package run

import (
	"slices"
	"strings"
	"testing"
)

// TestWhatCannotBePublishedIsRefused at start, with the flag and the reason.
func TestWhatCannotBePublishedIsRefused(t *testing.T) {
	for _, tc := range []struct {
		change func(*Options)
		want   string // part of the error, "" for none
	}{
		{func(o *Options) { o.Resources = []string{"amd.com/gpu", "nvidia.com/mig-1g.5gb"} }, ""},
		{func(o *Options) { o.Resources = []string{"nvidia.com/gpu"} }, ""},
		{func(o *Options) { o.CapacityName = "" }, ""},
		{func(o *Options) {
			o.GPUResources, o.Resources = []string{"example.com/gpu"}, []string{"example.com/gpu"}
		}, ""},
		{func(o *Options) { o.Resources = []string{"example.com/gpu"} }, "--resource=example.com/gpu: is not counted as a GPU (--gpu-resource=example.com/gpu would make it one)"},
		{func(o *Options) { o.Resources = []string{"cpu"} }, "--resource=cpu: is not counted as a GPU"},
		{func(o *Options) { o.Resources = []string{"nvidia.com/mig-*"} }, "not a pattern"},
		{func(o *Options) { o.Resources = []string{"amd.com/gpu", "amd.com/gpu"} }, `--resource=amd.com/gpu: ConfigMap "gpu-summary.amd.com.gpu" is also that of --resource=amd.com/gpu`},
		{func(o *Options) {
			o.GPUResources = []string{"example.com/A_B"}
			o.Resources = o.GPUResources
		}, `--resource=example.com/A_B: ConfigMap "gpu-summary.example.com.A_B": a lowercase`},
		{func(o *Options) { o.CapacityName = "gpu-summary" }, `--capacity-name=gpu-summary: ConfigMap "gpu-summary" is also that of --name=gpu-summary`},
		{func(o *Options) { o.CapacityName = "gpu-summary-shard-0001" }, "is that of a shard"},
		{func(o *Options) { o.Name = strings.Repeat("n", 64) }, "no more than 63 characters"},
		{func(o *Options) { o.CapacityName = strings.Repeat("n", 250) }, "no more than 242 characters"},
		{func(o *Options) { o.MaxObjectBytes = 1 << 20 }, "--max-object-bytes=1048576: must be from 1024 to 524288"},
		{func(o *Options) { o.MaxObjectBytes = 10 }, "--max-object-bytes=10"},
	} {
		o := DefaultOptions()
		tc.change(o)
		err := o.Validate()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
	}
	o := DefaultOptions()
	o.Resources = []string{"amd.com/gpu"}
	if got, want := o.published(), []string{"gpu-summary", "gpu-summary.amd.com.gpu", "gpu-capacity"}; !slices.Equal(got, want) {
		t.Errorf("published are %q, want %q", got, want)
	}
}
