package count_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// TestReadingChangesNothing: quantities may change when they are read, and objects
// belong to others.
func TestReadingChangesNothing(t *testing.T) {
	slice := offers("n1", 2, tainted(resourcev1.DeviceTaintEffectNoExecute, 1), also(device("part", "mig", counters("set", "memory", "10Gi"))))
	before := slice.DeepCopy()
	count.ReadResourceSlice(slice)
	if diff := cmp.Diff(before, slice); diff != "" {
		t.Errorf("reading changed the slice:\n%s", diff)
	}
	claim := holds("a", "n1/gpu-0")
	kept := claim.DeepCopy()
	count.ReadResourceClaim(claim)
	if diff := cmp.Diff(kept, claim); diff != "" {
		t.Errorf("reading changed the claim:\n%s", diff)
	}
}

// TestClassOfAnAlternative: a result of the alternatives of a request is of the
// class of the one that was taken.
func TestClassOfAnAlternative(t *testing.T) {
	claim := holds("a", "n1/gpu-0")
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus", FirstAvailable: []resourcev1.DeviceSubRequest{
		{Name: "best", DeviceClassName: "best.example.com"}, {Name: "any", DeviceClassName: driver},
	}}}
	claim.Status.Allocation.Devices.Results[0].Request = "gpus/any"
	if got := count.ReadResourceClaim(claim).Devices[0].Class; got != driver {
		t.Errorf("class %q, want %q", got, driver)
	}
}

// TestWhatMattersOfDRA decides what causes a pass, and what does not.
func TestWhatMattersOfDRA(t *testing.T) {
	type change struct {
		name  string
		do    func(*resourcev1.ResourceSlice)
		alike bool
	}
	text := "other"
	for _, c := range []change{
		{"nothing", func(*resourcev1.ResourceSlice) {}, true},
		{"a label", func(s *resourcev1.ResourceSlice) { s.Labels = map[string]string{"a": "b"} }, true},
		{"a generation", inPool("n1", 2, 1), false},
		{"a taint", tainted(resourcev1.DeviceTaintEffectNoSchedule, 0), false},
		{"a taint that keeps nobody away", tainted(resourcev1.DeviceTaintEffectNone, 0), true},
		{"a device", also(device("gpu-9", "gpu")), false},
		{"an attribute", func(s *resourcev1.ResourceSlice) {
			s.Spec.Devices[0].Attributes["type"] = resourcev1.DeviceAttribute{StringValue: &text}
		}, false},
	} {
		from, to := count.ReadResourceSlice(offers("n1", 2)), count.ReadResourceSlice(offers("n1", 2, c.do))
		if from.Equal(&to) != c.alike || to.Equal(&from) != c.alike {
			t.Errorf("%s: alike is %v", c.name, !c.alike)
		}
	}
	reserved := holds("a", "n1/gpu-0")
	reserved.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p"}}
	from, to := count.ReadResourceClaim(holds("a", "n1/gpu-0")), count.ReadResourceClaim(reserved)
	freed := count.ReadResourceClaim(unallocated(holds("a", "n1/gpu-0")))
	if !from.Equal(&to) || from.Equal(&freed) || !from.Holds() || freed.Holds() {
		t.Error("D3: who has reserved a claim makes no difference, what it holds does")
	}
	class1, class2 := count.ReadDeviceClass(class("a", count.NVIDIA, "true"), names), count.ReadDeviceClass(class("a", count.NVIDIA, "false"), names)
	if class1.Equal(&class2) || !class1.Equal(&class1) {
		t.Error("a class's selectors make a difference")
	}
}
