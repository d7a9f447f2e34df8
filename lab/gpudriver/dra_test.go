package gpudriver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	resourcev1 "k8s.io/api/resource/v1"
	drahealth "k8s.io/kubelet/pkg/apis/dra-health/v1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	cdi "tags.cncf.io/container-device-interface/specs-go"
)

// TestSlicesFollowTheDevices: what the API server has of the node's devices, in every
// state of the driver.
func TestSlicesFollowTheDevices(t *testing.T) {
	c := newCluster(t)
	k := newKubelet(t)
	d := k.run(Options{Node: c.node, Mode: DRA, Client: c.client, Product: "Stand-in H100"}, gpu+"=2", mig+"=1", shared+"=1x4")
	all := []string{"gpu-0 gpu", "gpu-1 gpu", "gpu-2-mig-1g-5gb-0 mig 1g.5gb", "gpu-3 gpu shared by 4"}
	c.published(all...)
	for _, device := range c.slices()[0].Spec.Devices {
		if got := device.Attributes["productName"].StringValue; got == nil || *got != "Stand-in H100" {
			t.Errorf("product of %s: %v", device.Name, got)
		}
	}

	must(t, d.SetHealthy("gpu-1", false))
	sick := slices.Clone(all)
	sick[1] += " tainted"
	c.published(sick...)
	must(t, d.Restart(t.Context()))
	c.published(sick...)
	must(t, d.SetHealthy("gpu-1", true))
	c.published(all...)

	must(t, d.Vanish(t.Context()))
	if left := c.slices(); len(left) > 0 {
		t.Errorf("%d slices left after the driver has vanished", len(left))
	}
	must(t, d.Return(t.Context()))
	c.published(all...)

	// The same devices, now as device plugins.
	must(t, d.Use(t.Context(), DevicePlugin))
	if left := c.slices(); len(left) > 0 {
		t.Errorf("%d slices left of a driver that is none of DRA", len(left))
	}
	k.start()
	k.offers(gpu, 2, 2)
	must(t, d.Use(t.Context(), DRA))
	k.gone(gpu)
	c.published(all...)
}

// TestManyDevicesAreInSeveralSlices: one slice has room for 64 that can be tainted.
func TestManyDevicesAreInSeveralSlices(t *testing.T) {
	c := newCluster(t)
	d := newKubelet(t).run(Options{Node: c.node, Mode: DRA, Client: c.client}, gpu+"=100")
	for _, sick := range []string{"gpu-0", "gpu-99"} {
		must(t, d.SetHealthy(sick, false))
	}
	eventually(t, "two slices of 100 devices", func() error {
		devices, tainted := 0, 0
		for _, s := range c.slices() {
			devices += len(s.Spec.Devices)
			for _, d := range s.Spec.Devices {
				tainted += len(d.Taints)
			}
		}
		if len(c.slices()) != 2 || devices != 100 || tainted != 2 {
			return fmt.Errorf("%d slices with %d devices, %d tainted", len(c.slices()), devices, tainted)
		}
		return nil
	})
}

// TestClaimsArePrepared: the scheduler allocates devices, and the kubelet's calls make
// of each claim what the container runtime needs.
func TestClaimsArePrepared(t *testing.T) {
	c := newCluster(t)
	k := newKubelet(t)
	d := k.run(Options{Node: c.node, Mode: DRA, Client: c.client}, gpu+"=2", mig+"=1", shared+"=1x2")
	c.published("gpu-0 gpu", "gpu-1 gpu", "gpu-2-mig-1g-5gb-0 mig 1g.5gb", "gpu-3 gpu shared by 2")
	k.knowsDRADriver()
	node := drapb.NewDRAPluginClient(k.dial(filepath.Join("plugins", DRADriver, "dra.sock")))

	two := c.allocated("two", asks("gpus", DRADriver, 2, func(r *resourcev1.ExactDeviceRequest) {
		r.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `!device.allowMultipleAllocations`}}}
	}))
	slice := c.allocated("slice", asks("mig", "mig.nvidia.com", 1))
	// Both share the device that is left, and no third can.
	share, other := c.allocated("share", asks("gpu", DRADriver, 1)), c.allocated("other", asks("gpu", DRADriver, 1))

	for _, claim := range []*resourcev1.ResourceClaim{two, slice, share, other, two} { // one is asked for twice
		results := claim.Status.Allocation.Devices.Results
		answer := k.prepare(node, claim)
		if len(answer.Devices) != len(results) || answer.Error != "" {
			t.Fatalf("preparing %s, with %d devices: %v", claim.Name, len(results), answer)
		}
		for n, device := range answer.Devices {
			if device.DeviceName != results[n].Device || device.PoolName != c.node || !slices.Equal(device.RequestNames, []string{results[n].Request}) {
				t.Errorf("%s: prepared %v for %v", claim.Name, device, results[n])
			}
			want := []string{Variable(results[n].Device) + "=" + d.uuid(results[n].Device)}
			if diff := cmp.Diff(want, k.environment(device.CdiDeviceIds...)); diff != "" {
				t.Errorf("%s: environment of %s (-want +got):\n%s", claim.Name, device.DeviceName, diff)
			}
		}
	}

	// Another claim for a device that is held, and one for a device of elsewhere.
	thief := two.DeepCopy()
	thief.Name, thief.UID, thief.ResourceVersion = "thief", "", ""
	if got := k.prepare(node, c.withAllocation(thief)); !strings.Contains(got.Error, "in use for the claim with UID "+string(two.UID)) {
		t.Errorf("a device was prepared twice: %v", got)
	}
	lost := thief.DeepCopy()
	lost.Name = "lost"
	lost.Status.Allocation.Devices.Results[0].Device = "gpu-77"
	if got := k.prepare(node, c.withAllocation(lost)); !strings.Contains(got.Error, "gpu-77") {
		t.Errorf("a device that does not exist was prepared: %v", got)
	}
	// An administrator may have what others have.
	yes := true
	watcher := thief.DeepCopy()
	watcher.Name = "watcher"
	watcher.Spec.Devices.Requests[0].Exactly.AdminAccess = &yes
	for n := range watcher.Status.Allocation.Devices.Results {
		watcher.Status.Allocation.Devices.Results[n].AdminAccess = &yes
	}
	got := k.prepare(node, c.withAllocation(watcher))
	if env := k.environment(got.Devices[0].CdiDeviceIds...); got.Error != "" || !slices.Contains(env, AdminVariable+"=true") {
		t.Errorf("administrative access: %v, environment %v", got, env)
	}

	// What is prepared outlives the driver, and is let go once.
	must(t, d.Restart(t.Context()))
	node = drapb.NewDRAPluginClient(k.dial(filepath.Join("plugins", DRADriver, "dra.sock")))
	if got := k.prepare(node, c.claim("thief")); got.Error == "" {
		t.Error("after a restart a device was prepared twice")
	}
	for range 2 {
		k.unprepare(node, two)
	}
	if got := k.prepare(node, c.claim("thief")); got.Error != "" {
		t.Errorf("a device that was let go cannot be had: %v", got)
	}
}

// TestKubeletHearsOfHealth, which it shows in the status of pods.
func TestKubeletHearsOfHealth(t *testing.T) {
	c := newCluster(t)
	k := newKubelet(t)
	d := k.run(Options{Node: c.node, Mode: DRA, Client: c.client}, gpu+"=2")
	k.knowsDRADriver()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := drahealth.NewDRAResourceHealthClient(k.dial(filepath.Join("plugins", DRADriver, "dra.sock"))).
		NodeWatchResources(ctx, &drahealth.NodeWatchResourcesRequest{})
	must(t, err)
	for _, want := range []drahealth.HealthStatus{drahealth.HealthStatus_HEALTHY, drahealth.HealthStatus_UNHEALTHY, drahealth.HealthStatus_HEALTHY} {
		must(t, d.SetHealthy("gpu-1", want == drahealth.HealthStatus_HEALTHY))
		for got := drahealth.HealthStatus(-1); got != want; {
			report, err := stream.Recv()
			must(t, err)
			got = report.Devices[1].Health
		}
	}
}

func (d *Driver) uuid(device string) string {
	for _, known := range d.Devices() {
		if known.Name == device {
			return known.UUID
		}
	}
	return ""
}

// knowsDRADriver does what the kubelet's plugin watcher does when a registration
// socket appears.
func (k *kubelet) knowsDRADriver() {
	k.Helper()
	socket := filepath.Join("plugins_registry", DRADriver+"-reg.sock")
	eventually(k.T, "the registration socket", func() error { _, err := os.Stat(filepath.Join(k.dir, socket)); return err })
	client := registration.NewRegistrationClient(k.dial(socket))
	info, err := client.GetInfo(k.Context(), &registration.InfoRequest{})
	must(k.T, err)
	if info.Type != registration.DRAPlugin || info.Name != DRADriver || info.Endpoint != filepath.Join(k.dir, "plugins", DRADriver, "dra.sock") {
		k.Errorf("registers as %v", info)
	}
	_, err = client.NotifyRegistrationStatus(k.Context(), &registration.RegistrationStatus{PluginRegistered: true})
	must(k.T, err)
}

func (k *kubelet) dial(socket string) *grpc.ClientConn {
	k.Helper()
	conn, err := grpc.NewClient("unix:"+filepath.Join(k.dir, socket), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	must(k.T, err)
	k.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (k *kubelet) prepare(node drapb.DRAPluginClient, claim *resourcev1.ResourceClaim) *drapb.NodePrepareResourceResponse {
	k.Helper()
	answer, err := node.NodePrepareResources(k.Context(), &drapb.NodePrepareResourcesRequest{Claims: []*drapb.Claim{{Namespace: claim.Namespace, Name: claim.Name, Uid: string(claim.UID)}}})
	must(k.T, err)
	return answer.Claims[string(claim.UID)]
}

func (k *kubelet) unprepare(node drapb.DRAPluginClient, claim *resourcev1.ResourceClaim) {
	k.Helper()
	answer, err := node.NodeUnprepareResources(k.Context(), &drapb.NodeUnprepareResourcesRequest{Claims: []*drapb.Claim{{Namespace: claim.Namespace, Name: claim.Name, Uid: string(claim.UID)}}})
	must(k.T, err)
	if got := answer.Claims[string(claim.UID)].Error; got != "" {
		k.Errorf("letting %s go: %s", claim.Name, got)
	}
}

// environment is what a container runtime makes of CDI devices.
func (k *kubelet) environment(ids ...string) (env []string) {
	k.Helper()
	files, err := filepath.Glob(filepath.Join(k.dir, "cdi", "*.json"))
	must(k.T, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(k.T, err)
		var spec cdi.Spec
		must(k.T, json.Unmarshal(data, &spec))
		for _, device := range spec.Devices {
			if slices.Contains(ids, spec.Kind+"="+device.Name) {
				env = append(env, device.ContainerEdits.Env...)
			}
		}
	}
	return env
}
