package gpudriver

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Resource is what to offer under one name.
type Resource struct {
	Name  string // nvidia.com/gpu, nvidia.com/mig-1g.5gb, nvidia.com/gpu.shared
	Count int    // devices
	Slots int    // how many pods share a device; 0 and 1 mean that none do
}

// maxDevices bounds how many devices one name can have, slots included: more are
// a slip of the finger, and a kubelet would choke on them.
const maxDevices = 4096

// ParseResource reads NAME=COUNT, or NAME=COUNTxSLOTS where devices are shared.
func ParseResource(s string) (Resource, error) {
	fail := func(why string) (Resource, error) {
		return Resource{}, fmt.Errorf("resource %q: %s; want NAME=COUNT or NAME=COUNTxSLOTS, as in nvidia.com/gpu=8 or nvidia.com/gpu.shared=8x4", s, why)
	}
	name, amount, ok := strings.Cut(s, "=")
	if !ok {
		return fail("no count")
	}
	count, slots, shared := strings.Cut(amount, "x")
	r := Resource{Name: name}
	var err error
	if r.Count, err = strconv.Atoi(count); err != nil {
		return fail("the count is not a number")
	}
	if shared {
		if r.Slots, err = strconv.Atoi(slots); err != nil {
			return fail("the slots are not a number")
		}
	}
	if err := r.check(); err != nil {
		return fail(err.Error())
	}
	return r, nil
}

func (r Resource) check() error {
	if problems := validation.IsQualifiedName(r.Name); len(problems) > 0 {
		return fmt.Errorf("the name is not one of an extended resource: %s", problems[0])
	}
	domain, rest, ok := strings.Cut(r.Name, "/")
	if !ok || strings.HasSuffix(domain, "kubernetes.io") {
		return fmt.Errorf("the name is not one of an extended resource: it needs a vendor's domain")
	}
	if strings.HasPrefix(rest, "mig-") && r.profile() == "" {
		return fmt.Errorf("the MIG profile is not one as 1g.5gb")
	}
	if r.Count < 0 || r.Slots < 0 {
		return fmt.Errorf("a number is negative")
	}
	if r.Count > maxDevices || r.Count*max(r.Slots, 1) > maxDevices {
		return fmt.Errorf("more than %d devices", maxDevices)
	}
	return nil
}

var migResource = regexp.MustCompile(`/mig-(([1-7])g\.[0-9]+gb(?:\.[a-z0-9.]+)?)$`)

// profile is that of the MIG slices that the resource stands for, "" if it stands
// for whole GPUs.
func (r Resource) profile() string {
	if m := migResource.FindStringSubmatch(r.Name); m != nil {
		return m[1]
	}
	return ""
}

// perGPU is how many slices of the profile a GPU is cut into: it has seven
// compute slices.
func (r Resource) perGPU() int {
	m := migResource.FindStringSubmatch(r.Name)
	if m == nil {
		return 1
	}
	return 7 / int(m[2][0]-'0')
}
