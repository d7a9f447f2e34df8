package gpudriver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	cdi "tags.cncf.io/container-device-interface/specs-go"
)

const (
	cdiKind = "k8s." + DRADriver + "/claim"
	// cdiPrefix is that of the files of claims in a directory that is everybody's.
	cdiPrefix = "k8s." + DRADriver + "-claim_"

	// AdminVariable is set for containers whose access is administrative.
	AdminVariable = "GPU_SUMMARY_ADMIN_ACCESS"
)

// claims are the claims that are prepared. Each is a CDI specification, which the
// container runtime reads, and these files are all that is remembered: another
// driver process finds them.
type claims struct {
	inventory *inventory
	pool      string
	dir       string

	mu sync.Mutex
}

func (c *claims) file(claim types.UID) string {
	return filepath.Join(c.dir, cdiPrefix+string(claim)+".json")
}

// prepare writes the specification of a claim and says which part of it each of its
// requests is. It is asked again for claims that are prepared, and answers the same.
func (c *claims) prepare(claim *resourcev1.ResourceClaim) ([]kubeletplugin.Device, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, err := c.held(claim.UID)
	if err != nil {
		return nil, err
	}
	devices, _ := c.inventory.list()
	spec := cdi.Spec{Kind: cdiKind}
	var prepared []kubeletplugin.Device
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != DRADriver {
			continue
		}
		device, ok := c.find(devices, result)
		if !ok {
			return nil, fmt.Errorf("device %s of pool %s is not one of this node's", result.Device, result.Pool)
		}
		env := []string{Variable(device.Name) + "=" + device.UUID}
		if result.AdminAccess != nil && *result.AdminAccess {
			env = append(env, AdminVariable+"=true")
		} else if by := held[device.UUID]; by != "" && device.Slots == 1 {
			return nil, fmt.Errorf("device %s is in use for the claim with UID %s", device.Name, by)
		}
		name := fmt.Sprintf("%s-%d", claim.UID, len(spec.Devices))
		spec.Devices = append(spec.Devices, cdi.Device{Name: name, ContainerEdits: cdi.ContainerEdits{Env: env}})
		prepared = append(prepared, kubeletplugin.Device{
			Requests: []string{result.Request}, PoolName: result.Pool, DeviceName: result.Device, ShareID: result.ShareID,
			CDIDeviceIDs: []string{cdiKind + "=" + name},
		})
	}
	return prepared, c.write(claim.UID, &spec)
}

func (c *claims) find(devices []Device, result resourcev1.DeviceRequestAllocationResult) (Device, bool) {
	n := slices.IndexFunc(devices, func(d Device) bool { return result.Pool == c.pool && d.Name == result.Device })
	if n < 0 {
		return Device{}, false
	}
	return devices[n], true
}

// write puts a whole specification in place, or none.
func (c *claims) write(claim types.UID, spec *cdi.Spec) error {
	var err error
	if spec.Version, err = cdi.MinimumRequiredVersion(spec); err != nil {
		return fmt.Errorf("describe devices for the container runtime: %w", err)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("describe devices for the container runtime: %w", err)
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("make directory of CDI specifications: %w", err)
	}
	// The runtime reads files that end in .json only.
	draft := c.file(claim) + ".new"
	if err := os.WriteFile(draft, data, 0o644); err != nil {
		return fmt.Errorf("write CDI specification: %w", err)
	}
	if err := os.Rename(draft, c.file(claim)); err != nil {
		return fmt.Errorf("write CDI specification: %w", err)
	}
	return nil
}

// held says by which claim each device is held, for all claims but one. What is used
// with administrative access is held by nobody.
func (c *claims) held(except types.UID) (map[string]string, error) {
	held := map[string]string{}
	files, err := filepath.Glob(filepath.Join(c.dir, cdiPrefix+"*.json"))
	if err != nil {
		return nil, fmt.Errorf("list prepared claims: %w", err)
	}
	for _, file := range files {
		if file == c.file(except) {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read prepared claim: %w", err)
		}
		var spec cdi.Spec
		if err := json.Unmarshal(data, &spec); err != nil {
			return nil, fmt.Errorf("read prepared claim %s: %w", file, err)
		}
		claim := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), cdiPrefix), ".json")
		for _, device := range spec.Devices {
			if env := device.ContainerEdits.Env; len(env) == 1 { // else there is a second, for administrative access
				_, uuid, _ := strings.Cut(env[0], "=")
				held[uuid] = claim
			}
		}
	}
	return held, nil
}

// unprepare forgets a claim.
func (c *claims) unprepare(claim types.UID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.Remove(c.file(claim)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove CDI specification: %w", err)
	}
	return nil
}
