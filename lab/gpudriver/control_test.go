package gpudriver

import (
	"context"
	"path/filepath"
	"testing"
)

func TestCommandsFromAnotherProcess(t *testing.T) {
	k := newKubelet(t)
	k.start()
	d := k.run(Options{}, gpu+"=4")
	k.offers(gpu, 4, 4)
	c := Control{Socket: filepath.Join(k.dir, "gpudriver.sock")}
	_, err := c.Status(t.Context())
	wantError(t, err, c.Socket)

	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { served <- d.ServeControl(ctx, c.Socket) }()
	eventually(t, "the control socket", func() error {
		_, err := c.Status(t.Context())
		return err
	})

	must(t, c.SetHealthy(t.Context(), "gpu-1", false))
	k.offers(gpu, 3, 4)
	must(t, c.Vanish(t.Context()))
	k.gone(gpu)
	status, err := c.Status(t.Context())
	must(t, err)
	if status.Present || status.Mode != DevicePlugin || status.Node != "n1" || len(status.Devices) != 4 || status.Devices[1].Healthy {
		t.Errorf("status %+v, want four devices on n1, the second unhealthy, the driver away", status)
	}
	must(t, c.Return(t.Context()))
	k.offers(gpu, 3, 4)
	must(t, c.Restart(t.Context()))
	must(t, c.SetHealthy(t.Context(), "gpu-1", true))
	k.offers(gpu, 4, 4)

	wantError(t, c.SetHealthy(t.Context(), "gpu-4", true), `no device "gpu-4"`)
	wantError(t, c.Use(t.Context(), DRA), "needs a client")
	wantError(t, c.Use(t.Context(), "nvml"), "nvml", "there are")
	cancel()
	must(t, <-served)
}
