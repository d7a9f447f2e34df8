package count

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/count/selector"
)

// class is a class in a pass.
type class struct {
	*DeviceClass
	selector selector.Class
	row      int // what its devices count as, an index into draTally.rowNames; -1 for nothing
	issue    ClassIssue
}

// slice is a slice in a pass.
type slice struct {
	*ResourceSlice
	selector selector.Slice
}

// resolve decides which class stands for which resource (D1, D5).
//
// A resource that several classes name belongs to the newest of them, and if they
// are equally new to the first by name. A class that is left without its resource
// counts as --dra-class says, else under its own name, as any other does.
func (x *draTally) resolve() {
	owner := make(map[string]*DeviceClass)
	for _, c := range x.Classes {
		if old := owner[c.Resource]; old == nil || newer(c, old) {
			owner[c.Resource] = c
		}
	}
	for _, c := range x.Classes {
		if c.Resource != "" && owner[c.Resource] == c {
			x.resources[c.Name] = c.Resource
		}
	}
	for name, resource := range x.Resources {
		// A class may be gone while claims still hold what it selected.
		if x.resources[name] == "" {
			x.resources[name] = resource
		}
		x.gpuDrivers[name] = true
	}
}

func newer(c, d *DeviceClass) bool {
	return cmp.Or(cmp.Compare(d.Created, c.Created), strings.Compare(c.Name, d.Name)) < 0
}

// compile prepares every class's selectors, and the slices to be asked.
func (x *draTally) compile(pass selector.Pass) {
	for _, c := range x.Classes {
		compiled, err := pass.Class(c.Selectors)
		if err != nil {
			x.status.Classes = append(x.status.Classes, ClassIssue{Class: c.Name, Reason: "not counted: " + err.Error()})
			continue
		}
		x.classes = append(x.classes, &class{DeviceClass: c, selector: compiled})
	}
	slices.SortFunc(x.classes, func(a, b *class) int { return strings.Compare(a.Name, b.Name) })
	x.slices = make([]slice, 0, len(x.Slices))
	for _, s := range x.Slices {
		x.slices = append(x.slices, slice{s, pass.Slice(s.Attributes)})
	}
}

// findDrivers finds out which drivers hand out GPUs: those with a device that a
// class of a GPU resource selects, and those that --dra-class names, for vendors
// name the class of whole devices after the driver. Of all other drivers nothing is
// counted: a NIC is no GPU, and is handed out in the same way.
func (x *draTally) findDrivers() {
	for _, c := range x.classes {
		if x.resources[c.Name] == "" {
			continue
		}
		for i := range x.slices {
			s := &x.slices[i]
			if !x.gpuDrivers[s.Driver] {
				selected, _, _ := s.selector.Select(c.selector)
				x.gpuDrivers[s.Driver] = selected.Len() > 0
			}
		}
	}
}

// findClasses decides which classes are counted: those that stand for a resource
// and those that select a GPU.
func (x *draTally) findClasses() {
	for _, c := range x.classes {
		mapped := x.resources[c.Name] != ""
		counted := mapped
		for i := range x.slices {
			s := &x.slices[i]
			if !mapped && !x.gpuDrivers[s.Driver] {
				continue
			}
			selected, failed, why := s.selector.Select(c.selector)
			counted = counted || selected.Len() > 0
			c.fails(failed, why)
		}
		if c.issue.Devices > 0 {
			x.status.Classes = append(x.status.Classes, c.issue)
		}
		c.row = -1
		if counted {
			c.row = x.rowIndex(x.rowName(c.Name))
			x.implicit[c.Name] = x.rowNames[c.row]
		}
	}
	slices.SortFunc(x.status.Classes, func(a, b ClassIssue) int { return strings.Compare(a.Class, b.Class) })
}

// fails notes that selectors failed on devices. The scheduler gives up on a whole
// node when that happens; here the device is not counted as one of the class.
func (c *class) fails(devices int, why string) {
	if devices == 0 {
		return
	}
	reason := "not counted on some devices: " + why
	if c.issue.Devices == 0 || reason < c.issue.Reason {
		c.issue.Reason = reason // the first by name, so that equal worlds say the same
	}
	c.issue.Class = c.Name
	c.issue.Devices += devices
}

// rowName is what devices of a class count as: the resource it stands for, else its
// own name.
func (x *draTally) rowName(class string) string {
	if resource := x.resources[class]; resource != "" {
		return resource
	}
	return class
}

func (x *draTally) rowIndex(name string) int {
	i := slices.Index(x.rowNames, name)
	if i < 0 {
		i = len(x.rowNames)
		x.rowNames = append(x.rowNames, name)
	}
	return i
}
