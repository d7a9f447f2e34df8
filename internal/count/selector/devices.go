package selector

import (
	"fmt"
	"math/bits"

	resourcev1 "k8s.io/api/resource/v1"
)

// Devices is what selectors look at in one version of a ResourceSlice: the
// attributes and capacities of its devices. It is never changed, so its address
// stands for what is in it.
//
// They are kept encoded. A device has a dozen attributes, which take four kilobytes
// as maps and a sixth of that encoded; and they are looked at once.
type Devices struct {
	driver  string
	count   int
	encoded string
}

// Encode keeps what selectors can ask of a slice's devices. It does not change
// them.
func Encode(driver string, devices []resourcev1.Device) *Devices {
	kept := resourcev1.ResourceSliceSpec{Devices: make([]resourcev1.Device, 0, len(devices))}
	for i := range devices {
		d := &devices[i]
		kept.Devices = append(kept.Devices, resourcev1.Device{
			Name: d.Name, Attributes: d.Attributes, Capacity: d.Capacity, AllowMultipleAllocations: d.AllowMultipleAllocations,
		})
	}
	// The encoder writes to memory of the size it has asked for; it cannot fail.
	encoded, _ := kept.Marshal()
	return &Devices{driver: driver, count: len(devices), encoded: string(encoded)}
}

// Equal reports whether every selector gives the same answer on both.
func (d *Devices) Equal(e *Devices) bool {
	if d == nil || e == nil {
		return d == e
	}
	return *d == *e
}

func (d *Devices) decode() ([]resourcev1.Device, error) {
	var spec resourcev1.ResourceSliceSpec
	if err := spec.Unmarshal([]byte(d.encoded)); err != nil {
		return nil, fmt.Errorf("decode devices of driver %s: %w", d.driver, err)
	}
	return spec.Devices, nil
}

// Set is a set of devices of a slice, by their place in it. The zero value is
// empty.
type Set []uint64

func (s *Set) add(i int) {
	for len(*s) <= i/64 {
		*s = append(*s, 0)
	}
	(*s)[i/64] |= 1 << (i % 64)
}

// Has reports whether the device at a place is in the set.
func (s Set) Has(i int) bool { return i/64 < len(s) && s[i/64]&(1<<(i%64)) != 0 }

// Len is the number of devices in the set.
func (s Set) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Or returns the union of both sets and changes neither.
func (s Set) Or(t Set) Set {
	switch {
	case len(t) == 0:
		return s
	case len(s) == 0:
		return t
	case len(s) < len(t):
		s, t = t, s
	}
	union := append(Set(nil), s...)
	for i, word := range t {
		union[i] |= word
	}
	return union
}
