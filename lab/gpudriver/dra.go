package gpudriver

import (
	"context"
	"errors"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// DRADriver is the name under which devices are published, that of NVIDIA's
// driver.
const DRADriver = "gpu.nvidia.com"

// healthInterval is how often the kubelet hears of unchanged health. After 30
// seconds without news it takes it for unknown.
const healthInterval = 10 * time.Second

// runDRA serves the kubelet and publishes the devices until ctx ends.
func (d *Driver) runDRA(ctx context.Context) error {
	data, err := d.kubeletDir("plugins", DRADriver)
	if err != nil {
		return err
	}
	registry, err := d.kubeletDir("plugins_registry")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	helper, err := kubeletplugin.Start(ctx, &draPlugin{Driver: d, fail: cancel},
		kubeletplugin.DriverName(DRADriver), kubeletplugin.NodeName(d.options.Node), kubeletplugin.KubeClient(d.options.Client),
		kubeletplugin.PluginDataDirectoryPath(data), kubeletplugin.RegistrarDirectoryPath(registry),
	)
	if err != nil {
		return fmt.Errorf("start DRA driver: %w", err)
	}
	defer helper.Stop()
	for {
		devices, changed := d.inventory.list()
		// The first time it waits for a list of slices, which ctx may end.
		if err := helper.PublishResources(ctx, d.slices(devices)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("publish devices: %w", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
	}
}

// withdraw deletes the driver's ResourceSlices, as a kubelet does half a minute
// after a driver has gone.
func (d *Driver) withdraw(ctx context.Context) error {
	selector := fields.Set{resourcev1.ResourceSliceSelectorDriver: DRADriver, resourcev1.ResourceSliceSelectorNodeName: d.options.Node}
	err := d.options.Client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		return fmt.Errorf("delete ResourceSlices: %w", err)
	}
	return nil
}

// draPlugin is what the kubelet sees of the driver, by way of the helper.
type draPlugin struct {
	*Driver
	fail context.CancelCauseFunc
}

// PrepareResourceClaims lets containers find their devices.
func (p *draPlugin) PrepareResourceClaims(_ context.Context, claims []*resourcev1.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := p.claims.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

// UnprepareResourceClaims undoes that.
func (p *draPlugin) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = p.claims.unprepare(claim.UID)
	}
	return results, nil
}

// HandleError is told what goes wrong in the background. The helper tries again
// where that can help.
func (p *draPlugin) HandleError(ctx context.Context, err error, msg string) {
	utilruntime.HandleErrorWithContext(ctx, err, msg)
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		p.fail(fmt.Errorf("%s: %w", msg, err))
	}
}

// WatchHealthStatus tells the kubelet how the devices are.
func (p *draPlugin) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		devices, changed := p.inventory.list()
		select {
		case <-ctx.Done():
			return nil
		case reports <- p.health(devices):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-tick.C:
		}
	}
}

func (p *draPlugin) health(devices []Device) (report kubeletplugin.DeviceHealthReport) {
	for _, d := range devices {
		health := kubeletplugin.HealthStatusHealthy
		if !d.Healthy {
			health = kubeletplugin.HealthStatusUnhealthy
		}
		report.Devices = append(report.Devices, kubeletplugin.DeviceHealth{
			PoolName: p.options.Node, DeviceName: d.Name, Health: health, LastUpdated: time.Now(),
		})
	}
	return report
}
