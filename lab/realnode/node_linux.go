package realnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
	"github.com/gpu-summary/gpu-summary-controller/lab/realnode/keeper"
)

const (
	// readyTimeout bounds the wait for the kubelet to call its node ready.
	readyTimeout = 2 * time.Minute
	pollInterval = 100 * time.Millisecond
	stopTimeout  = time.Minute
)

// Node is a running node.
type Node struct {
	options Options
	name    string
	number  int          // on its plane, from 1
	address netip.Addr   // the node's
	pods    netip.Prefix // has the addresses of its pods, and its own
	place   keeper.Place
	files   plane.NodeFiles
	inUse   *os.File // keeps the binaries from being pruned; may be nil
	inside  *inside
	proxies *proxies
	stop    func() error
}

// Start starts a node and returns when it is ready. Where something is missing
// (Missing) nothing is started, and the error has it all. ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Node, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	if o.Binaries == (plane.NodeBinaries{}) {
		var err error
		if o.Binaries, err = plane.BuildNode(ctx, o.Progress); err != nil {
			return nil, err
		}
	}
	n, err := newNode(o)
	if err != nil {
		return nil, err
	}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start node %s: %w", n.name, err), n.Stop())
	}
	return n, nil
}

// Check returns an error with all that is missing, nil if nothing is.
func Check() error {
	if lacks := Missing(); len(lacks) > 0 {
		return fmt.Errorf("a real node needs what this machine lacks:\n  %s", strings.Join(lacks, "\n  "))
	}
	return nil
}

func newNode(o Options) (*Node, error) {
	n := &Node{options: o, proxies: newProxies()}
	if err := n.enrol(); err != nil {
		return nil, err
	}
	id, err := keeper.NewID()
	if err != nil {
		n.resign()
		return nil, err
	}
	dir, err := keeper.NewDir(o.Plane.Dir(), fmt.Sprintf("node-%d", n.number), id)
	if err != nil {
		n.resign()
		return nil, err
	}
	n.place = keeper.Place{
		ID:       id,
		Dir:      dir,
		Bridge:   bridgeDevice,
		Address:  netip.PrefixFrom(n.address, n.pods.Bits()).String(),
		Server:   plane.NodeServerAddress + "/32",
		Programs: map[string]string{"kubelet": o.Binaries.Kubelet},
	}
	n.inUse = o.Binaries.Hold()
	n.stop = sync.OnceValue(n.stopAll)
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	if err := n.makePlace(ctx); err != nil {
		return err
	}
	if err := errors.Join(n.leadOut(), n.connect()); err != nil {
		return err
	}
	if err := n.addContainerd(ctx); err != nil {
		return err
	}
	if err := n.loadPause(ctx); err != nil {
		return err
	}
	var kubelet, kubeProxy error
	var wg sync.WaitGroup
	wg.Go(func() { kubelet = n.addKubelet(ctx) })
	wg.Go(func() { kubeProxy = n.addKubeProxy(ctx) })
	wg.Wait()
	if err := errors.Join(kubelet, kubeProxy); err != nil {
		return err
	}
	return n.awaitReady(ctx)
}

// makePlace starts the keeper and enters the namespaces that it makes.
func (n *Node) makePlace(ctx context.Context) error {
	pluginDir, _ := machine{}.orThis().pluginDir()
	file, err := n.place.Write()
	if err != nil {
		return err
	}
	if err := n.writeFiles(pluginDir); err != nil {
		return err
	}
	_, err = n.options.Plane.Add(ctx, plane.Part{
		Name: n.partName(Keeper), Path: n.options.Binaries.Keeper, Args: keeper.Args(file),
		Probe: func(context.Context) error { _, err := n.place.First(); return err },
	})
	if err != nil {
		return err
	}
	first, err := n.place.First()
	if err != nil {
		return err
	}
	n.inside, err = enter(first)
	return err
}

// leadOut lets the node reach the apiserver.
func (n *Node) leadOut() error {
	apiserver := strings.TrimPrefix(n.options.Plane.Config().Host, "https://")
	in, err := n.inside.listen(n.files.APIServer)
	if err != nil {
		return fmt.Errorf("listen in the node's network: %w", err)
	}
	n.proxies.forward(in, new(net.Dialer).DialContext, apiserver)
	return nil
}

func (n *Node) addContainerd(ctx context.Context) error {
	path, err := exec.LookPath("containerd")
	if err != nil {
		return fmt.Errorf("find containerd: %w", err)
	}
	return n.add(ctx, plane.Part{
		Name: Containerd, Path: path, Args: []string{"--config", filesInside + "/containerd.toml"},
		URL: "unix://" + filepath.Join(n.place.Folder("run"), "containerd", "containerd.sock"),
		Probe: func(ctx context.Context) error {
			return n.ctr(ctx, nil, nil, "version")
		},
	})
}

func (n *Node) addKubelet(ctx context.Context) error {
	return n.add(ctx, plane.Part{
		Name: Kubelet, Path: "/run/programs/kubelet", Args: n.kubeletArgs(),
		URL:   "https://" + net.JoinHostPort(n.address.String(), kubeletPort),
		Probe: n.get("http://" + kubeletHealth + "/healthz"),
	})
}

func (n *Node) addKubeProxy(ctx context.Context) error {
	return n.add(ctx, plane.Part{
		Name: KubeProxy, Path: "/run/programs/kubelet", Args: n.kubeProxyArgs(),
		Probe: n.get("http://" + kubeProxyHealth + "/healthz"),
	})
}

func (n *Node) add(ctx context.Context, part plane.Part) error {
	part.Name, part.Start = n.partName(part.Name), n.inside.start
	part.Env = append(part.Env, "TMPDIR=/run/tmp")
	_, err := n.options.Plane.Add(ctx, part)
	return err
}

// get returns a probe inside that succeeds when a GET is answered with 200.
func (n *Node) get(url string) func(context.Context) error {
	client := &http.Client{Transport: &http.Transport{DialContext: n.inside.dial, DisableKeepAlives: true}}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	}
}

// awaitReady waits until the node can take pods.
func (n *Node) awaitReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.options.Plane.Config())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready within %s", readyTimeout))
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last string
	for {
		node, err := client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("wait for it: %w (%s)", context.Cause(ctx), last)
		case err != nil:
			last = err.Error()
		default:
			if last = notReady(node); last == "" {
				return nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for it: %w (%s)", context.Cause(ctx), last)
		}
	}
}

// notReady says why a node takes no pods, "" if it does.
func notReady(node *corev1.Node) string {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return condition.Message
		}
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return "it has the taint " + taint.Key
		}
	}
	if len(node.Status.Conditions) == 0 {
		return "its kubelet has reported nothing yet"
	}
	return ""
}

// Stop stops the node and removes all of it but its Node object. It may be called more
// than once, and has to be before the plane's.
func (n *Node) Stop() error { return n.stop() }

func (n *Node) stopAll() error {
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, name := range []string{KubeProxy, Kubelet, Containerd} {
		errs = append(errs, n.options.Plane.Remove(ctx, n.partName(name)))
	}
	errs = append(errs, n.disconnect())
	n.proxies.close()
	if n.inside != nil {
		errs = append(errs, n.inside.close())
	}
	errs = append(errs, n.options.Plane.Remove(ctx, n.partName(Keeper)))
	if n.inUse != nil {
		errs = append(errs, n.inUse.Close())
	}
	// The keeper has done so, unless it never started or was killed.
	errs = append(errs, n.place.Clear())
	n.resign()
	return errors.Join(errs...)
}
