package gpudriver

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// Device is a GPU, or a part of one, that pods can be given.
type Device struct {
	Name     string `json:"name"`              // as in commands and ResourceSlices
	UUID     string `json:"uuid"`              // as pods see it
	Resource string `json:"resource"`          // what it is offered as
	Parent   string `json:"parent,omitempty"`  // the GPU that a MIG slice is a part of
	Profile  string `json:"profile,omitempty"` // of a MIG slice
	Slots    int    `json:"slots"`             // how many pods may have it at once
	Healthy  bool   `json:"healthy"`
}

// ids are the names of the device's slots for the kubelet, which knows nothing of
// sharing.
func (d Device) ids() []string {
	if d.Slots == 1 {
		return []string{d.UUID}
	}
	ids := make([]string, d.Slots)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%s%d", d.UUID, slotMark, i)
	}
	return ids
}

// slotMark is between a UUID and the number of a slot, as in NVIDIA's plugin.
const slotMark = "::"

// Variable is the environment variable in which a pod that was given the device
// of that name finds its UUID. Each device has its own, so that no two drivers,
// resources or claims overwrite each other's.
func Variable(device string) string {
	return "GPU_SUMMARY_DEVICE_" + strings.ToUpper(strings.ReplaceAll(device, "-", "_"))
}

// inventory is the devices of a node.
type inventory struct {
	mu      sync.Mutex
	devices []Device
	changed chan struct{} // closed at the next change
}

// newInventory makes the same devices for the same arguments, so that pods keep
// theirs when the driver restarts.
func newInventory(node string, resources []Resource) *inventory {
	inv := &inventory{changed: make(chan struct{})}
	gpus := 0
	for _, r := range resources {
		for n := range r.Count {
			d := Device{
				Name: fmt.Sprintf("gpu-%d", gpus+n/r.perGPU()), Resource: r.Name,
				Slots: max(r.Slots, 1), Healthy: true, Profile: r.profile(),
			}
			kind := "GPU"
			if d.Profile != "" {
				d.Parent = d.Name
				d.Name = fmt.Sprintf("%s-mig-%s-%d", d.Parent, strings.ReplaceAll(d.Profile, ".", "-"), n%r.perGPU())
				kind = "MIG"
			}
			d.UUID = uuidOf(kind, node, d.Name)
			inv.devices = append(inv.devices, d)
		}
		gpus += (r.Count + r.perGPU() - 1) / r.perGPU()
	}
	return inv
}

func uuidOf(kind, node, device string) string {
	return kind + "-" + uuid.NewSHA1(uuid.NameSpaceOID, []byte(node+"/"+device)).String()
}

// list returns all devices, and a channel that is closed when that is no longer
// what they are.
func (i *inventory) list() ([]Device, <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.devices), i.changed
}

// setHealthy says how a device is, by name or UUID. A GPU that is cut into MIG
// slices stands for all of them.
func (i *inventory) setHealthy(device string, healthy bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	known, changed := false, false
	for n := range i.devices {
		d := &i.devices[n]
		if device == "" || device != d.Name && device != d.UUID && device != d.Parent {
			continue
		}
		known = true
		changed = changed || d.Healthy != healthy
		d.Healthy = healthy
	}
	if !known {
		return fmt.Errorf("no device %q; there are %s", device, i.names())
	}
	if changed {
		close(i.changed)
		i.changed = make(chan struct{})
	}
	return nil
}

// names says which devices there are; of many, the first and the last.
func (i *inventory) names() string {
	switch n := len(i.devices); n {
	case 0:
		return "none"
	case 1:
		return i.devices[0].Name
	default:
		return fmt.Sprintf("%d, from %s to %s", n, i.devices[0].Name, i.devices[n-1].Name)
	}
}

// byID finds the device that the kubelet knows by an id.
func byID(devices []Device, resource, id string) (Device, bool) {
	uuid, _, _ := strings.Cut(id, slotMark)
	for _, d := range devices {
		if d.UUID == uuid && d.Resource == resource && slices.Contains(d.ids(), id) {
			return d, true
		}
	}
	return Device{}, false
}
