package gpudriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
)

// Mode is how devices are offered to the kubelet.
type Mode string

// The two ways there are.
const (
	DevicePlugin Mode = "device-plugin"
	DRA          Mode = "dra"
)

// Options say which devices there are and for whom.
type Options struct {
	// Node is the name of the node, which has to exist for DRA.
	Node string
	// KubeletDir is the kubelet's root directory; "" is /var/lib/kubelet.
	KubeletDir string
	// Resources are the devices.
	Resources []Resource
	// Mode is how they are offered at first; "" is DevicePlugin.
	Mode Mode
	// Client is for DRA, and only needed for that.
	Client kubernetes.Interface
	// CDIDir is where DRA tells the container runtime, in CDI specifications, which
	// devices containers have; "" is cdi in KubeletDir. The runtime has to look there:
	// containerd has cdi_spec_dirs for that from version 1.7 on, and see [Runtime].
	CDIDir string
	// Product is the model that DRA says the devices are; "" is one that says what
	// they are.
	Product string
}

// Driver plays a node's GPU driver.
type Driver struct {
	options   Options
	inventory *inventory
	claims    *claims
	requests  chan request
	ended     chan struct{} // closed when Run has returned
}

// state is what a driver does, or is to do.
type state struct {
	Mode    Mode `json:"mode"`
	Present bool `json:"present"`
}

func (s state) publishes() bool { return s.Present && s.Mode == DRA }

// request asks Run for another state.
type request struct {
	change  func(*state) // nil asks for none
	restart bool
	done    chan reply // has room for one
}

type reply struct {
	now state
	err error
}

// New makes a driver; Run starts it.
func New(o Options) (*Driver, error) {
	if o.KubeletDir == "" {
		o.KubeletDir = "/var/lib/kubelet"
	}
	if o.CDIDir == "" {
		o.CDIDir = filepath.Join(o.KubeletDir, "cdi")
	}
	if o.Mode == "" {
		o.Mode = DevicePlugin
	}
	if o.Product == "" {
		o.Product = "Stand-in GPU"
	}
	if o.Node == "" {
		return nil, errors.New("make GPU driver: the node has no name")
	}
	names := map[string]bool{}
	for _, r := range o.Resources {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("make GPU driver: resource %q: %w", r.Name, err)
		}
		if names[r.Name] {
			return nil, fmt.Errorf("make GPU driver: resource %q is there twice", r.Name)
		}
		names[r.Name] = true
	}
	d := &Driver{
		options:   o,
		inventory: newInventory(o.Node, o.Resources),
		requests:  make(chan request),
		ended:     make(chan struct{}),
	}
	d.claims = &claims{inventory: d.inventory, pool: o.Node, dir: o.CDIDir}
	return d, d.supports(o.Mode)
}

func (d *Driver) supports(m Mode) error {
	switch {
	case m != DevicePlugin && m != DRA:
		return fmt.Errorf("mode %q: there are %s and %s", m, DevicePlugin, DRA)
	case m == DRA && d.options.Client == nil:
		return fmt.Errorf("mode %s: needs a client of the cluster, to publish ResourceSlices", m)
	}
	return nil
}

// Run offers the devices until ctx ends, once. Then it is as if the driver had been
// killed: its ResourceSlices stay until a kubelet finds that it is gone.
func (d *Driver) Run(ctx context.Context) error {
	defer close(d.ended)
	if info, err := os.Stat(d.options.KubeletDir); err != nil || !info.IsDir() {
		return fmt.Errorf("run GPU driver: no kubelet's directory at %s", d.options.KubeletDir)
	}
	now := state{Mode: d.options.Mode, Present: true}
	for s := d.begin(ctx, now); ; {
		select {
		case <-s.ended:
			s.cancel()
			return s.err // with ctx, or because it failed
		case r := <-d.requests:
			want := now
			if r.change != nil {
				r.change(&want)
			}
			if want == now && !r.restart {
				r.done <- reply{now: now}
				continue
			}
			err := s.end()
			if err == nil && now.publishes() && !want.publishes() {
				err = d.withdraw(ctx)
			}
			now = want
			r.done <- reply{now, err}
			s = d.begin(ctx, now)
		}
	}
}

// session is what goes on while the state stays the same.
type session struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // to be read when ended is closed
}

func (d *Driver) begin(ctx context.Context, now state) *session {
	ctx, cancel := context.WithCancel(ctx)
	s := &session{cancel: cancel, ended: make(chan struct{})}
	run := d.runPlugins
	if now.Mode == DRA {
		run = d.runDRA
	}
	go func() {
		defer close(s.ended)
		if !now.Present {
			<-ctx.Done()
			return
		}
		if s.err = run(ctx); s.err != nil {
			s.err = fmt.Errorf("run GPU driver: %w", s.err)
		}
	}()
	return s
}

func (s *session) end() error {
	s.cancel()
	<-s.ended
	return s.err
}

// runPlugins runs a device plugin for each resource.
func (d *Driver) runPlugins(ctx context.Context) error {
	dir, err := d.kubeletDir("device-plugins")
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, r := range d.options.Resources {
		p := &plugin{inventory: d.inventory, resource: r.Name, dir: dir}
		group.Go(func() error { return p.run(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	<-ctx.Done() // without any resource there was nothing to wait for
	return nil
}

// kubeletDir returns a directory of the kubelet's, which it makes if the driver is
// there first.
func (d *Driver) kubeletDir(elements ...string) (string, error) {
	path := filepath.Join(append([]string{d.options.KubeletDir}, elements...)...)
	if err := os.MkdirAll(path, 0o750); err != nil {
		return "", fmt.Errorf("make directory for sockets: %w", err)
	}
	return path, nil
}

// Devices returns what there is and how it is.
func (d *Driver) Devices() []Device {
	devices, _ := d.inventory.list()
	return devices
}
