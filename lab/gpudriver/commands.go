package gpudriver

import (
	"context"
	"errors"
	"fmt"
)

// SetHealthy says how a device is, by its name or UUID. A GPU that is cut into MIG
// slices stands for all of them. The kubelet is told when a device plugin's device
// changes; in DRA an unhealthy device has a taint.
func (d *Driver) SetHealthy(device string, healthy bool) error {
	return d.inventory.setHealthy(device, healthy)
}

// Restart ends the driver and starts it anew, as an upgrade would. Devices stay as
// they are, and so do ResourceSlices.
func (d *Driver) Restart(ctx context.Context) error {
	return d.ask(ctx, request{restart: true})
}

// Vanish takes the driver away, as if it were uninstalled: when it returns, no
// socket and no ResourceSlice is left. What pods have, they keep.
func (d *Driver) Vanish(ctx context.Context) error {
	return d.ask(ctx, request{change: func(s *state) { s.Present = false }})
}

// Return brings it back.
func (d *Driver) Return(ctx context.Context) error {
	return d.ask(ctx, request{change: func(s *state) { s.Present = true }})
}

// Use offers the same devices in another way, and no longer in this one. A driver
// that has vanished stays away.
func (d *Driver) Use(ctx context.Context, m Mode) error {
	if err := d.supports(m); err != nil {
		return err
	}
	return d.ask(ctx, request{change: func(s *state) { s.Mode = m }})
}

// state returns what the driver is doing.
func (d *Driver) state(ctx context.Context) (state, error) {
	answer, err := d.answer(ctx, request{})
	return answer.now, err
}

func (d *Driver) ask(ctx context.Context, r request) error {
	_, err := d.answer(ctx, r)
	return err
}

// answer hands a request to Run and waits until it is done.
func (d *Driver) answer(ctx context.Context, r request) (reply, error) {
	r.done = make(chan reply, 1)
	select {
	case d.requests <- r:
	case <-d.ended:
		return reply{}, errors.New("the GPU driver has ended")
	case <-ctx.Done():
		return reply{}, fmt.Errorf("the GPU driver is not running: %w", context.Cause(ctx))
	}
	select {
	case answer := <-r.done:
		return answer, answer.err
	case <-ctx.Done():
		return reply{}, fmt.Errorf("wait for the GPU driver to get there: %w", context.Cause(ctx))
	}
}
