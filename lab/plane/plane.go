// Package plane runs a real Kubernetes control plane on this machine: etcd,
// kube-apiserver, kube-scheduler, kube-controller-manager, and KWOK in place of
// the kubelets, each a process of its own on the loopback address.
//
// A plane belongs to the process that started it. It ends with that process,
// keeps all its state in one directory, and any number of planes can run side
// by side.
package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Plane is a running control plane.
type Plane struct {
	options Options
	files   files
	state   *stateDir
	inUse   *os.File // keeps the binaries from being pruned; may be nil
	spawn   *spawner
	ca      *authority
	admin   pair
	etcdURL string
	config  *rest.Config
	failed  chan error

	mu         sync.Mutex
	components []*Component
	record     string // what Announce wrote

	stop func() error
}

// Start starts a control plane and returns when every part of it is ready. On
// failure it says which part and why, and leaves nothing behind. ctx bounds the
// start only; the plane runs until Stop.
func Start(ctx context.Context, o Options) (*Plane, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Binaries == (Binaries{}) {
		var err error
		if o.Binaries, err = Build(ctx, o.Progress); err != nil {
			return nil, err
		}
	}
	sweep()
	p, err := newPlane(o)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// newPlane claims the directory and makes the certificates.
func newPlane(o Options) (*Plane, error) {
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	admin, err := ca.client("admin", adminGroup)
	if err != nil {
		return nil, err
	}
	state, err := claim(o.Dir)
	if err != nil {
		return nil, err
	}
	p := &Plane{
		options: o,
		files:   files{dir: state.path},
		state:   state,
		ca:      ca,
		admin:   admin,
		// Nobody has to listen: a component that fails finds room.
		failed: make(chan error, 16),
	}
	p.stop = sync.OnceValue(p.stopAll)
	if err := p.files.writeStatic(ca); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	if o.RealNode {
		if err := p.files.writeForNode(ca); err != nil {
			return nil, errors.Join(err, p.Stop())
		}
	}
	p.inUse = o.Binaries.hold()
	if p.spawn, err = startSpawner(); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// start starts the components in the order they need each other.
func (p *Plane) start(ctx context.Context) error {
	if err := p.add(ctx, Etcd, p.newEtcd); err != nil {
		return err
	}
	if err := p.add(ctx, APIServer, p.newMainAPIServer); err != nil {
		return err
	}
	builders := map[string]func() (*Component, error){
		ControllerManager: p.newControllerManager,
		Scheduler:         p.newScheduler,
		KWOK:              p.newKWOK,
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for name, build := range builders {
		if !p.options.wants(name) {
			continue
		}
		wg.Go(func() {
			if err := p.add(ctx, name, build); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return p.awaitServiceAccount(ctx)
}

// add builds a component, starts it and waits until it is ready. If its port
// was taken between choosing and using it, it is built once more with another.
func (p *Plane) add(ctx context.Context, name string, build func() (*Component, error)) error {
	begin := time.Now()
	for attempt := 1; ; attempt++ {
		c, err := build()
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.components = append(p.components, c)
		p.mu.Unlock()
		err = c.Start(ctx)
		if err == nil {
			p.options.say("%s ready in %.1f s", name, time.Since(begin).Seconds())
			return nil
		}
		if attempt > 1 || !portTaken(err) {
			return err
		}
		p.forget(c)
	}
}

func (p *Plane) forget(c *Component) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.components = slices.DeleteFunc(p.components, func(o *Component) bool { return o == c })
}

// Config returns a client configuration with all rights and without throttle.
func (p *Plane) Config() *rest.Config { return rest.CopyConfig(p.config) }

// ConfigFor returns a client configuration of the given user: what it may do is
// what RBAC lets it.
func (p *Plane) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	pair, err := p.ca.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return restConfig(p.config.Host, p.ca.certPEM, pair), nil
}

// Kubeconfig returns the path of the admin's kubeconfig file.
func (p *Plane) Kubeconfig() string { return p.files.adminKubeconfig() }

// Dir returns the state directory.
func (p *Plane) Dir() string { return p.files.dir }

// AuditLog returns the path of the audit log of the first apiserver.
func (p *Plane) AuditLog() string { return p.files.auditLog(APIServer) }

// Component returns the component of that name, nil if there is none.
func (p *Plane) Component(name string) *Component {
	for _, c := range p.Components() {
		if c.name == name {
			return c
		}
	}
	return nil
}

// Components returns all components in the order they depend on each other.
func (p *Plane) Components() []*Component {
	p.mu.Lock()
	defer p.mu.Unlock()
	sorted := slices.Clone(p.components)
	slices.SortStableFunc(sorted, func(a, b *Component) int { return a.rank() - b.rank() })
	return sorted
}

// Failed delivers an *ExitError for every component that ends without being
// asked to.
func (p *Plane) Failed() <-chan error { return p.failed }

func (p *Plane) report(err *ExitError) {
	select {
	case p.failed <- err:
	default: // nobody reads; the first sixteen say enough
	}
}

// AddAPIServer starts a second kube-apiserver on the same etcd and returns it
// with an admin's client configuration for it.
func (p *Plane) AddAPIServer(ctx context.Context, name string, flags ...string) (*Component, *rest.Config, error) {
	if p.Component(name) != nil {
		return nil, nil, fmt.Errorf("add apiserver %q: there is a component of that name", name)
	}
	err := p.add(ctx, name, func() (*Component, error) { return p.newAPIServer(name, flags) })
	if err != nil {
		if c := p.Component(name); c != nil {
			err = errors.Join(err, c.Stop(ctx))
			p.forget(c)
		}
		return nil, nil, err
	}
	c := p.Component(name)
	return c, restConfig(c.url, p.ca.certPEM, p.admin), nil
}

// Stop stops every component and removes what the plane made. It is bounded,
// may be called more than once, and returns what could not be stopped or
// removed.
func (p *Plane) Stop() error { return p.stop() }

func (p *Plane) stopAll() error {
	var errs []error
	for _, c := range slices.Backward(p.Components()) {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout+killTimeout)
		errs = append(errs, c.Stop(ctx))
		cancel()
	}
	if p.spawn != nil {
		p.spawn.close()
	}
	if p.inUse != nil {
		errs = append(errs, p.inUse.Close())
	}
	p.mu.Lock()
	record := p.record
	p.mu.Unlock()
	if record != "" {
		if err := os.Remove(record); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, p.state.remove())
	return errors.Join(errs...)
}
