package count_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// driver is the GPU driver of most of these tests, and its class and its selector.
const (
	driver    = "gpu.nvidia.com"
	wholeGPUs = `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`
	migGPUs   = `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "mig"`
)

// class names an extended resource, or none if that is "".
func class(name, extended string, selectors ...string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(100, 0))}}
	if extended != "" {
		c.Spec.ExtendedResourceName = &extended
	}
	for _, s := range selectors {
		c.Spec.Selectors = append(c.Spec.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: s}})
	}
	return c
}

func created(seconds int64, c *resourcev1.DeviceClass) *resourcev1.DeviceClass {
	c.CreationTimestamp = metav1.NewTime(time.Unix(seconds, 0))
	return c
}

// offers is a slice of a pool named like its node, with so many whole GPUs called
// gpu-0, gpu-1 …
func offers(node string, gpus int, changes ...func(*resourcev1.ResourceSlice)) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-" + driver},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node,
			Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range gpus {
		s.Spec.Devices = append(s.Spec.Devices, device(fmt.Sprintf("gpu-%d", i), "gpu"))
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func device(name, kind string, uses ...resourcev1.DeviceCounterConsumption) resourcev1.Device {
	return resourcev1.Device{
		Name:             name,
		Attributes:       map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}, "uuid": {StringValue: &name}},
		ConsumesCounters: uses,
	}
}

func ofDriver(name string) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) { s.Spec.Driver = name }
}

func inPool(name string, generation, of int64) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) {
		s.Spec.Pool = resourcev1.ResourcePool{Name: name, Generation: generation, ResourceSliceCount: of}
	}
}

func tainted(effect resourcev1.DeviceTaintEffect, devices ...int) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) {
		for _, i := range devices {
			s.Spec.Devices[i].Taints = append(s.Spec.Devices[i].Taints, resourcev1.DeviceTaint{Key: "broken", Effect: effect})
		}
	}
}

// holds is a claim that has been given devices, each "pool/device" of the usual
// driver, on the node that the first pool is named after.
func holds(name string, devices ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: driver}},
		}}},
		Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}},
	}
	for _, d := range devices {
		pool, device, _ := strings.Cut(d, "/")
		a := c.Status.Allocation
		a.Devices.Results = append(a.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "gpus", Driver: driver, Pool: pool, Device: device,
		})
		a.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{pool}},
		}}}}
	}
	return c
}

// results changes every result of a claim.
func results(c *resourcev1.ResourceClaim, change func(*resourcev1.DeviceRequestAllocationResult)) *resourcev1.ResourceClaim {
	for i := range c.Status.Allocation.Devices.Results {
		change(&c.Status.Allocation.Devices.Results[i])
	}
	return c
}

// unallocated takes a claim's devices away.
func unallocated(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	c.Status.Allocation = nil
	return c
}

// asking lets a claim ask for another class.
func asking(class string, c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	c.Spec.Devices.Requests[0].Exactly.DeviceClassName = class
	return c
}

// perDevice lets each device say which node it is on.
func perDevice(nodes ...string) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) {
		s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, ptr(true)
		for i := range s.Spec.Devices {
			s.Spec.Devices[i].NodeName = &nodes[i]
		}
	}
}

func also(devices ...resourcev1.Device) func(*resourcev1.ResourceSlice) {
	return func(s *resourcev1.ResourceSlice) { s.Spec.Devices = append(s.Spec.Devices, devices...) }
}

// served marks a pod as the scheduler does when a claim serves its request.
func served(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
			ResourceClaimName: claim,
			RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "m2", ResourceName: count.NVIDIA, RequestName: "container-0-request-0"}},
		}
	}
}

// objects is a cluster with DRA. Without classes it has NVIDIA's for whole GPUs,
// named nvidia.com/gpu.
type objects struct {
	nodes   []*count.Node
	pods    []*corev1.Pod
	classes []*resourcev1.DeviceClass
	slices  []*resourcev1.ResourceSlice
	claims  []*resourcev1.ResourceClaim
	mapped  map[string]string
}

func (o objects) world() count.World {
	if o.nodes == nil {
		o.nodes = []*count.Node{node("n1", "0", "0")}
	}
	if o.classes == nil {
		o.classes = []*resourcev1.DeviceClass{class(driver, count.NVIDIA, wholeGPUs)}
	}
	if o.mapped == nil {
		o.mapped = count.DefaultDRAClasses()
	}
	d := &count.DRA{State: count.DRASynced, Resources: o.mapped}
	for _, c := range o.classes {
		r := count.ReadDeviceClass(c, names)
		d.Classes = append(d.Classes, &r)
	}
	for _, s := range o.slices {
		r := count.ReadResourceSlice(s)
		d.Slices = append(d.Slices, &r)
	}
	for _, c := range o.claims {
		r := count.ReadResourceClaim(c)
		d.Claims = append(d.Claims, &r)
	}
	return count.World{Nodes: o.nodes, NodesKnown: true, Pods: read(o.pods...), DRA: d}
}

// line writes a row in one line: node resource source capacity/allocatable, then
// what is requested, free and so on, zeroes left out.
func line(r count.Row) string {
	s := fmt.Sprintf("%s %s %s %d/%d", r.Node, r.Resource, r.Source, r.Capacity, r.Allocatable)
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"requested", r.Requested}, {"free", r.Free}, {"over", r.Overcommitted}, {"claimed", r.Claimed}, {"blocked", r.Blocked},
	} {
		if f.value != 0 {
			s += fmt.Sprintf(" %s %d", f.name, f.value)
		}
	}
	return s
}

func lines(snap *count.Snapshot) (out []string) {
	for _, r := range snap.Rows {
		out = append(out, line(r))
	}
	return out
}

// noNegatives holds of every snapshot (N2), and so does that the totals are the
// sums of the rows.
func noNegatives(t *testing.T, snap *count.Snapshot) {
	t.Helper()
	requested := map[string]int64{}
	for _, r := range snap.Rows {
		if min(r.Capacity, r.Allocatable, r.Requested, r.Free, r.UsableFree, r.Overcommitted, r.Claimed, r.Blocked) < 0 {
			t.Errorf("a number is negative: %+v", r)
		}
		if r.Free > r.Allocatable || r.UsableFree > r.Free {
			t.Errorf("more is free than there is: %+v", r)
		}
		requested[r.Resource] += r.Requested
	}
	for _, s := range snap.Summaries {
		if s.Requested != requested[s.Resource] {
			t.Errorf("the total of %s is %d, its rows have %d", s.Resource, s.Requested, requested[s.Resource])
		}
		var held int64
		for _, share := range s.Namespaces {
			held += share.Requested
		}
		if held != s.Requested {
			t.Errorf("namespaces hold %d %s, %d are requested", held, s.Resource, s.Requested)
		}
	}
}

func counters(set string, amounts ...any) resourcev1.DeviceCounterConsumption {
	c := resourcev1.DeviceCounterConsumption{CounterSet: set, Counters: map[string]resourcev1.Counter{}}
	for i := 0; i < len(amounts); i += 2 {
		c.Counters[amounts[i].(string)] = resourcev1.Counter{Value: resource.MustParse(amounts[i+1].(string))}
	}
	return c
}
