package gpudriver

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const (
	// UnhealthyTaint is on devices that are unhealthy.
	UnhealthyTaint = DRADriver + "/unhealthy"

	// What devices are published as, in the attribute "type".
	typeGPU = "gpu"
	typeMIG = "mig"

	slotCapacity = "slots"
)

// slices are the ResourceSlices of the node: one pool of its name, in as many
// slices as the API needs where devices have taints.
func (d *Driver) slices(devices []Device) resourceslice.DriverResources {
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{}}
	for chunk := range slices.Chunk(devices, resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures) {
		var slice resourceslice.Slice
		for _, device := range chunk {
			slice.Devices = append(slice.Devices, d.publish(device))
		}
		pool.Slices = append(pool.Slices, slice)
	}
	if len(devices) == 0 {
		// An empty pool says that there is a driver.
		pool.Slices = append(pool.Slices, resourceslice.Slice{})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.options.Node: pool}}
}

// publish describes a device, with names as NVIDIA's driver has them. What cannot be
// known of a GPU that does not exist is left out.
func (d *Driver) publish(device Device) resourcev1.Device {
	published := resourcev1.Device{
		Name: device.Name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": text(typeGPU), "uuid": text(device.UUID), "productName": text(d.options.Product),
		},
	}
	if device.Profile != "" {
		published.Attributes["type"] = text(typeMIG)
		published.Attributes["profile"] = text(device.Profile)
		published.Attributes["parentUUID"] = text(uuidOf("GPU", d.options.Node, device.Parent))
	}
	if device.Slots > 1 {
		share, one := true, *resource.NewQuantity(1, resource.DecimalSI)
		published.AllowMultipleAllocations = &share
		published.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{slotCapacity: {
			Value: *resource.NewQuantity(int64(device.Slots), resource.DecimalSI),
			// Who does not say how many gets one.
			RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &one, ValidValues: []resource.Quantity{one}},
		}}
	}
	if !device.Healthy {
		published.Taints = []resourcev1.DeviceTaint{{Key: UnhealthyTaint, Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	return published
}

func text(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }

// Classes are the DeviceClasses that NVIDIA's chart installs beside its driver. That
// of whole GPUs stands for the extended resource, so that pods can ask for
// nvidia.com/gpu wherever the devices come from.
func Classes() []*resourcev1.DeviceClass {
	class := func(name, kind string) *resourcev1.DeviceClass {
		return &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: "device.driver == '" + DRADriver + "' && device.attributes['" + DRADriver + "'].type == '" + kind + "'",
			}}}},
		}
	}
	gpu, extended := class(DRADriver, typeGPU), "nvidia.com/gpu"
	gpu.Spec.ExtendedResourceName = &extended
	return []*resourcev1.DeviceClass{gpu, class("mig.nvidia.com", typeMIG)}
}
