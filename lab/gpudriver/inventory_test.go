package gpudriver

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var errNotYet = errors.New("not yet")

func TestDevicesOfResources(t *testing.T) {
	resources := []Resource{{Name: gpu, Count: 1}, {Name: "nvidia.com/mig-3g.20gb", Count: 3}, {Name: shared, Count: 1, Slots: 2}}
	got, _ := newInventory("n1", resources).list()
	want := []Device{
		{Name: "gpu-0", Resource: gpu, Slots: 1, Healthy: true},
		{Name: "gpu-1-mig-3g-20gb-0", Resource: "nvidia.com/mig-3g.20gb", Parent: "gpu-1", Profile: "3g.20gb", Slots: 1, Healthy: true},
		{Name: "gpu-1-mig-3g-20gb-1", Resource: "nvidia.com/mig-3g.20gb", Parent: "gpu-1", Profile: "3g.20gb", Slots: 1, Healthy: true},
		{Name: "gpu-2-mig-3g-20gb-0", Resource: "nvidia.com/mig-3g.20gb", Parent: "gpu-2", Profile: "3g.20gb", Slots: 1, Healthy: true},
		{Name: "gpu-3", Resource: shared, Slots: 2, Healthy: true},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Device{}, "UUID")); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	again, _ := newInventory("n1", resources).list()
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("made anew they are others:\n%s", diff)
	}
	elsewhere, _ := newInventory("n2", resources).list()
	uuids := map[string]bool{}
	for _, d := range append(got, elsewhere...) {
		if uuids[d.UUID] || len(d.UUID) != 40 {
			t.Errorf("UUID %q of %s: there twice, or no UUID", d.UUID, d.Name)
		}
		uuids[d.UUID] = true
	}
}

func TestParseResource(t *testing.T) {
	for text, want := range map[string]Resource{
		"nvidia.com/gpu=8":               {Name: gpu, Count: 8},
		"nvidia.com/gpu=0":               {Name: gpu},
		"nvidia.com/gpu.shared=8x4":      {Name: shared, Count: 8, Slots: 4},
		"amd.com/gpu=1":                  {Name: "amd.com/gpu", Count: 1},
		"nvidia.com/mig-1g.10gb.me=7":    {Name: "nvidia.com/mig-1g.10gb.me", Count: 7},
		"nvidia.com/mig-7g.80gb=1x1":     {Name: "nvidia.com/mig-7g.80gb", Count: 1, Slots: 1},
		"nvidia.com/gpu=4096":            {Name: gpu, Count: 4096},
		"nvidia.com/gpu.shared=1024x004": {Name: shared, Count: 1024, Slots: 4},
	} {
		got, err := ParseResource(text)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, why := range map[string]string{
		"nvidia.com/gpu":              "no count",
		"nvidia.com/gpu=many":         "not a number",
		"nvidia.com/gpu=8xmany":       "not a number",
		"nvidia.com/gpu=-1":           "negative",
		"nvidia.com/gpu=4097":         "more than 4096",
		"nvidia.com/gpu=4096x4":       "more than 4096",
		"gpu=8":                       "vendor's domain",
		"kubernetes.io/gpu=8":         "vendor's domain",
		"nvidia.com/a/b=8":            "extended resource",
		"nvidia.com/mig-9g.5gb=8":     "MIG profile",
		"nvidia.com/mig-1g.5gb.+me=8": "extended resource",
	} {
		_, err := ParseResource(text)
		wantError(t, err, text, why)
	}
}

func TestNewRefuses(t *testing.T) {
	for why, o := range map[string]Options{
		"no name":      {},
		"there twice":  {Node: "n1", Resources: []Resource{{Name: gpu, Count: 1}, {Name: gpu, Count: 2}}},
		"negative":     {Node: "n1", Resources: []Resource{{Name: gpu, Count: -1}}},
		"needs a clie": {Node: "n1", Mode: DRA},
		"there are de": {Node: "n1", Mode: "nvml"},
	} {
		_, err := New(o)
		wantError(t, err, why)
	}
	d, err := New(Options{Node: "n1", KubeletDir: "/does/not/exist"})
	must(t, err)
	wantError(t, d.Run(t.Context()), "no kubelet's directory at /does/not/exist")
	wantError(t, d.Vanish(t.Context()), "ended")
}
