package count

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-summary/gpu-summary-controller/internal/count/selector"
)

// DeviceClass is what is kept of a v1.DeviceClass.
type DeviceClass struct {
	Name string
	UID  types.UID
	// Created is in nanoseconds: of two classes that name the same resource the
	// newer one has it (D1).
	Created int64
	// Resource is the GPU resource that the class names, "" for none.
	Resource string
	// Selectors are CEL expressions, all of which a device has to meet.
	Selectors []string
}

// ReadDeviceClass trims a class to its record.
func ReadDeviceClass(class *resourcev1.DeviceClass, names Names) DeviceClass {
	c := DeviceClass{Name: class.Name, UID: class.UID, Created: class.CreationTimestamp.UnixNano()}
	if name := class.Spec.ExtendedResourceName; name != nil && names.Match(*name) {
		c.Resource = *name
	}
	for _, s := range class.Spec.Selectors {
		if s.CEL == nil {
			// A kind of selector from the future. No expression compiles to what it
			// means, and the empty one compiles to nothing.
			s.CEL = &resourcev1.CELDeviceSelector{}
		}
		c.Selectors = append(c.Selectors, s.CEL.Expression)
	}
	return c
}

// Equal reports whether both records count alike.
func (c *DeviceClass) Equal(d *DeviceClass) bool {
	return c.Name == d.Name && c.UID == d.UID && c.Created == d.Created && c.Resource == d.Resource &&
		slices.Equal(c.Selectors, d.Selectors)
}

// ResourceSlice is what is kept of a v1.ResourceSlice.
type ResourceSlice struct {
	Name string
	UID  types.UID
	// Driver and Pool together name a pool: those of different drivers may have
	// the same name (D4).
	Driver, Pool string
	// Generation numbers the pool's versions, and Of is how many slices the pool
	// has in this one.
	Generation, Of int64
	// Node is where all devices are, "" if each says so itself, or if they can be
	// reached from several nodes.
	Node string
	// Model is the product that the devices' attributes name, "" if they name none
	// or not all the same.
	Model   string
	Devices []Device
	// Counters is what the pool's partitions draw on (D6).
	Counters []Counter
	// Attributes is what selectors look at.
	Attributes *selector.Devices
}

// Device is one device of a slice.
type Device struct {
	Name string
	// Node is where the device is, if its slice says nothing of that.
	Node string
	// Tainted devices are not handed out.
	Tainted bool
	// Uses is what the device takes from its pool's counters (D6).
	Uses []Counter
}

// Counter is an amount of something that the partitions of a device have between
// them, its memory or its cores. Value is in thousandths.
type Counter struct {
	Set, Name string
	Value     int64
}

// modelAttributes name the product: NVIDIA's and AMD's drivers have the first,
// Intel's has the second.
var modelAttributes = []resourcev1.QualifiedName{"productName", "model"}

// ReadResourceSlice trims a slice to its record. It never changes the slice.
func ReadResourceSlice(slice *resourcev1.ResourceSlice) ResourceSlice {
	spec := &slice.Spec
	s := ResourceSlice{
		Name: slice.Name, UID: slice.UID,
		Driver: spec.Driver, Pool: spec.Pool.Name,
		Generation: spec.Pool.Generation, Of: spec.Pool.ResourceSliceCount,
		Model:      modelOf(spec),
		Attributes: selector.Encode(spec.Driver, spec.Devices),
	}
	if spec.NodeName != nil {
		s.Node = *spec.NodeName
	}
	for i := range spec.Devices {
		s.Devices = append(s.Devices, readDevice(&spec.Devices[i]))
	}
	for _, set := range spec.SharedCounters {
		s.Counters = append(s.Counters, readCounters(set.Name, set.Counters)...)
	}
	return s
}

func readDevice(device *resourcev1.Device) Device {
	d := Device{Name: device.Name}
	if device.NodeName != nil {
		d.Node = *device.NodeName
	}
	for _, taint := range device.Taints {
		// Any other effect, known or not yet known, keeps nobody away.
		if taint.Effect == resourcev1.DeviceTaintEffectNoSchedule || taint.Effect == resourcev1.DeviceTaintEffectNoExecute {
			d.Tainted = true
		}
	}
	for _, use := range device.ConsumesCounters {
		d.Uses = append(d.Uses, readCounters(use.CounterSet, use.Counters)...)
	}
	return d
}

func readCounters(set string, counters map[string]resourcev1.Counter) (out []Counter) {
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		value := counters[name].Value // a copy: reading a quantity can change it
		out = append(out, Counter{Set: set, Name: name, Value: value.MilliValue()})
	}
	return out
}

func modelOf(spec *resourcev1.ResourceSliceSpec) (model string) {
	for i := range spec.Devices {
		of := ""
		for _, name := range modelAttributes {
			for _, name := range []resourcev1.QualifiedName{name, resourcev1.QualifiedName(spec.Driver) + "/" + name} {
				if a := spec.Devices[i].Attributes[name]; of == "" && a.StringValue != nil {
					of = *a.StringValue
				}
			}
		}
		if i > 0 && of != model {
			return ""
		}
		model = of
	}
	return model
}

// Equal reports whether both records count alike.
func (s *ResourceSlice) Equal(t *ResourceSlice) bool {
	return s.Name == t.Name && s.UID == t.UID && s.Driver == t.Driver && s.Pool == t.Pool &&
		s.Generation == t.Generation && s.Of == t.Of && s.Node == t.Node && s.Model == t.Model &&
		slices.EqualFunc(s.Devices, t.Devices, Device.equal) && slices.Equal(s.Counters, t.Counters) &&
		s.Attributes.Equal(t.Attributes)
}

func (d Device) equal(e Device) bool {
	return d.Name == e.Name && d.Node == e.Node && d.Tainted == e.Tainted && slices.Equal(d.Uses, e.Uses)
}

// nodeOf is where a device of the slice is, "" if it can be reached from several
// nodes.
func (s *ResourceSlice) nodeOf(d *Device) string {
	if s.Node != "" {
		return s.Node
	}
	return d.Node
}

// ResourceClaim is what is kept of a v1.ResourceClaim.
type ResourceClaim struct {
	Namespace string
	Name      string
	UID       types.UID
	// Node is the only node where the claim can be used, "" if there are more.
	Node string
	// Devices is what the claim holds, empty while it is not allocated.
	Devices []Allocated
}

// Allocated is a device that a claim holds, or holds a share of.
type Allocated struct {
	Driver, Pool, Device string
	// Class is the class that the request asked for.
	Class string
}

// ReadResourceClaim trims a claim to its record. Devices given for administration
// are left out: whoever has one of those takes it from nobody (D3).
func ReadResourceClaim(claim *resourcev1.ResourceClaim) ResourceClaim {
	c := ResourceClaim{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	allocation := claim.Status.Allocation
	if allocation == nil {
		return c
	}
	c.Node = onlyNode(allocation.NodeSelector)
	for i := range allocation.Devices.Results {
		r := &allocation.Devices.Results[i]
		if r.AdminAccess != nil && *r.AdminAccess {
			continue
		}
		c.Devices = append(c.Devices, Allocated{r.Driver, r.Pool, r.Device, classOf(&claim.Spec, r.Request)})
	}
	return c
}

// classOf finds the class that a request asks for. The name of an alternative is
// "request/alternative".
func classOf(spec *resourcev1.ResourceClaimSpec, name string) string {
	for i := range spec.Devices.Requests {
		r := &spec.Devices.Requests[i]
		if r.Exactly != nil && r.Name == name {
			return r.Exactly.DeviceClassName
		}
		for j := range r.FirstAvailable {
			if r.Name+"/"+r.FirstAvailable[j].Name == name {
				return r.FirstAvailable[j].DeviceClassName
			}
		}
	}
	return ""
}

// onlyNode is the node that a selector pins to, as the scheduler does when a claim
// holds devices of a node.
func onlyNode(selector *corev1.NodeSelector) string {
	if selector == nil || len(selector.NodeSelectorTerms) != 1 {
		return ""
	}
	for _, field := range selector.NodeSelectorTerms[0].MatchFields {
		if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
			return field.Values[0]
		}
	}
	return ""
}

// Equal reports whether both records count alike. Who has reserved a claim makes
// no difference (D3).
func (c *ResourceClaim) Equal(d *ResourceClaim) bool {
	return c.Namespace == d.Namespace && c.Name == d.Name && c.UID == d.UID &&
		c.Node == d.Node && slices.Equal(c.Devices, d.Devices)
}

// Holds reports whether the claim holds anything.
func (c *ResourceClaim) Holds() bool { return len(c.Devices) > 0 }
