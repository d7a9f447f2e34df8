package plane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	// probeTimeout bounds one question; a paused component never answers.
	probeTimeout = 5 * time.Second
	// releaseTimeout is for the deletion of some thousand leases.
	releaseTimeout = time.Minute
)

// newEtcd chooses etcd's ports.
func (p *Plane) newEtcd() (*Component, error) {
	client, err := freePort()
	if err != nil {
		return nil, err
	}
	peer, err := freePort()
	if err != nil {
		return nil, err
	}
	p.etcdURL = httpURL(client)
	c := p.newComponent(Etcd, Etcd, p.etcdURL, etcdFlags(p.files, client, peer))
	c.probe = p.get(c.url + "/readyz")
	return c, nil
}

// newMainAPIServer is the server everyone's kubeconfig points at, so these
// files are written here, once its port is known.
func (p *Plane) newMainAPIServer() (*Component, error) {
	c, err := p.newAPIServer(APIServer, nil)
	if err != nil {
		return nil, err
	}
	p.config = restConfig(c.url, p.ca.certPEM, p.admin)
	return c, p.writeKubeconfigs()
}

func (p *Plane) newAPIServer(name string, more []string) (*Component, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	flags := apiserverFlags(p.files, port, p.etcdURL)
	if p.options.RealNode {
		flags = append(flags, apiserverNodeFlags(p.files, name)...)
	}
	if p.options.Audit {
		flags = append(flags, auditFlags(p.files, p.files.auditLog(name))...)
	}
	c := p.newComponent(name, APIServer, httpsURL(port), flags)
	c.args = append(c.args, more...)
	c.probe = p.get(c.url + "/readyz")
	return c, nil
}

func (p *Plane) newScheduler() (*Component, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c := p.newComponent(Scheduler, Scheduler, httpsURL(port), schedulerFlags(p.files, port))
	// Not /healthz, which is fine long before the caches are filled.
	c.probe = p.get(c.url + "/readyz")
	return c, nil
}

func (p *Plane) newControllerManager() (*Component, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c := p.newComponent(ControllerManager, ControllerManager, httpsURL(port), controllerManagerFlags(p.files, port))
	c.probe = p.get(c.url + "/healthz")
	return c, nil
}

func (p *Plane) newKWOK() (*Component, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c := p.newComponent(KWOK, KWOK, httpURL(port), kwokFlags(p.files, port, p.options.RealNode))
	c.probe = p.get(c.url + "/healthz")
	c.before = func(ctx context.Context) error {
		if c.current() == nil {
			return nil // the first start: there is nothing to inherit
		}
		return p.releaseNodes(ctx)
	}
	return c, nil
}

// newComponent fills in what all have in common. kind is what the component
// is, name what it is called: a second apiserver has another name.
func (p *Plane) newComponent(name, kind, url string, flags []string) *Component {
	path, args := p.options.Binaries.ControlPlane, []string{kind}
	if kind == KWOK {
		path, args = p.options.Binaries.KWOK, nil
	}
	args = append(args, flags...)
	args = append(args, p.options.ExtraFlags[kind]...)
	return &Component{
		name:  name,
		kind:  kind,
		path:  path,
		args:  args,
		env:   p.environment(),
		dir:   p.files.dir,
		log:   p.files.log(name),
		url:   url,
		spawn: p.spawn.start,
		ended: p.report,
		turn:  make(chan struct{}, 1),
	}
}

// environment is deliberately not ours. KUBE_CACHE_MUTATION_DETECTOR and the
// like are meant for the program under test and would slow down or end the
// components; ETCD_* variables would change etcd's flags; and with the user's
// home KWOK would read ~/.kwok.
func (p *Plane) environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + p.files.dir,
		"TMPDIR=" + p.files.temp(),
	}
}

// writeKubeconfigs writes a file for each component and for the admin.
func (p *Plane) writeKubeconfigs() error {
	// The names of scheduler and controller manager are the ones Kubernetes'
	// own role bindings give the right permissions to. KWOK may do everything:
	// its part is that of all kubelets together.
	users := map[string]struct {
		user   string
		groups []string
	}{
		Scheduler:         {user: "system:kube-scheduler"},
		ControllerManager: {user: "system:kube-controller-manager"},
		KWOK:              {user: "kwok", groups: []string{adminGroup}},
	}
	for name, u := range users {
		pair, err := p.ca.client(u.user, u.groups...)
		if err != nil {
			return err
		}
		config := restConfig(p.config.Host, p.ca.certPEM, pair)
		if err := writeKubeconfig(p.files.kubeconfig(name), u.user, config); err != nil {
			return err
		}
	}
	return writeKubeconfig(p.files.adminKubeconfig(), "admin", p.config)
}

// releaseNodes deletes the node leases. KWOK has a new identity each time it
// starts and would otherwise wait for the leases of its predecessor to expire,
// minutes in which no pod would start.
func (p *Plane) releaseNodes(ctx context.Context) error {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	if err := p.request(ctx, releaseTimeout, http.MethodDelete, p.config.Host+leases); err != nil {
		return fmt.Errorf("delete node leases: %w", err)
	}
	return nil
}

// awaitServiceAccount waits for the controller manager to have made the service
// account without which admission rejects every pod in the default namespace.
func (p *Plane) awaitServiceAccount(ctx context.Context) error {
	c := p.Component(ControllerManager)
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not there within %s", readyTimeout))
	defer cancel()
	err := poll(ctx, c.current().done, p.get(p.config.Host+"/api/v1/namespaces/default/serviceaccounts/default"))
	if errors.Is(err, errEnded) {
		return c.exitError(c.current())
	}
	if err != nil {
		return fmt.Errorf("wait for service account default/default: %w%s", err, quoteTail(c.log))
	}
	return nil
}

func portTaken(err error) bool {
	var exit *ExitError
	return errors.As(err, &exit) && strings.Contains(exit.Tail, "address already in use")
}

// rank is the component's place in the order of dependence: what was added (Add)
// depends on everything else.
func (c *Component) rank() int {
	if i := slices.Index(startOrder, c.kind); i >= 0 {
		return i
	}
	return len(startOrder)
}
