package gpudriver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	kubeletplugins "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
)

// patience bounds every wait. A test that gets there does not wait.
const patience = 60 * time.Second

// kubelet is the part of a kubelet that plugins talk to: its own server and
// clients, and a memory of what they said.
type kubelet struct {
	*testing.T
	dir    string // its root directory
	server kubeletplugins.Server

	mu      sync.Mutex
	plugins map[string]kubeletplugins.DevicePlugin
	devices map[string]map[string]string // health by resource and id; nil when the plugin has gone
	lives   map[string]int               // how often a plugin has registered
	changed chan struct{}
}

func newKubelet(t *testing.T) *kubelet {
	return &kubelet{
		T: t, dir: t.TempDir(), plugins: map[string]kubeletplugins.DevicePlugin{},
		devices: map[string]map[string]string{}, lives: map[string]int{}, changed: make(chan struct{}),
	}
}

func (k *kubelet) start() {
	k.Helper()
	var err error
	k.server, err = kubeletplugins.NewServer(klog.Background(), filepath.Join(k.dir, "device-plugins", kubeletSocket), k, k)
	if err == nil {
		err = k.server.Start(klog.Background())
	}
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(k.stop)
}

func (k *kubelet) stop() {
	if err := k.server.Stop(klog.Background()); err != nil {
		k.Error(err)
	}
}

// CleanupPluginDirectory removes all sockets, as kubelets do when they start.
func (k *kubelet) CleanupPluginDirectory(_ klog.Logger, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (k *kubelet) PluginConnected(_ context.Context, resource string, p kubeletplugins.DevicePlugin) error {
	k.note(func() { k.plugins[resource] = p; k.lives[resource]++ })
	return nil
}

func (k *kubelet) PluginDisconnected(_ klog.Logger, resource, _ string) {
	k.note(func() { k.devices[resource] = nil })
}

func (k *kubelet) PluginListAndWatchReceiver(_ klog.Logger, resource string, r *pluginapi.ListAndWatchResponse) {
	k.note(func() {
		k.devices[resource] = map[string]string{}
		for _, d := range r.Devices {
			k.devices[resource][d.ID] = d.Health
		}
	})
}

func (k *kubelet) note(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
	close(k.changed)
	k.changed = make(chan struct{})
}

// await waits until check has nothing to object to.
func (k *kubelet) await(what string, check func() error) {
	k.Helper()
	deadline := time.After(patience)
	for {
		k.mu.Lock()
		err, changed := check(), k.changed
		k.mu.Unlock()
		if err == nil {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			k.Fatalf("waited for %s: %v", what, err)
		}
	}
}

// offers waits until the resource has so many healthy devices of all.
func (k *kubelet) offers(resource string, healthy, all int) {
	k.Helper()
	k.await(fmt.Sprintf("%d of %d healthy %s", healthy, all, resource), func() error {
		if k.devices[resource] == nil {
			return fmt.Errorf("no plugin is connected")
		}
		got := 0
		for _, health := range k.devices[resource] {
			if health == pluginapi.Healthy {
				got++
			}
		}
		if got != healthy || len(k.devices[resource]) != all {
			return fmt.Errorf("%d of %d are healthy", got, len(k.devices[resource]))
		}
		return nil
	})
}

// gone waits until the plugin's stream has ended.
func (k *kubelet) gone(resource string) {
	k.Helper()
	k.await("the plugin of "+resource+" to go", func() error {
		if k.devices[resource] != nil {
			return fmt.Errorf("it is connected")
		}
		return nil
	})
}

func (k *kubelet) allocate(resource string, ids ...string) (map[string]string, error) {
	k.Helper()
	k.mu.Lock()
	p := k.plugins[resource]
	k.mu.Unlock()
	response, err := p.API().Allocate(k.Context(), &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}}})
	if err != nil {
		return nil, err
	}
	return response.ContainerResponses[0].Envs, nil
}

// sockets are those of plugins.
func (k *kubelet) sockets() (names []string) {
	k.Helper()
	paths, err := filepath.Glob(filepath.Join(k.dir, "device-plugins", "*.sock"))
	if err != nil {
		k.Fatal(err)
	}
	for _, path := range paths {
		if name := filepath.Base(path); name != kubeletSocket {
			names = append(names, name)
		}
	}
	return names
}

// run starts a driver of the kubelet's node, which ends with the test.
func (k *kubelet) run(o Options, resources ...string) *Driver {
	k.Helper()
	o.KubeletDir = k.dir
	if o.Node == "" {
		o.Node = "n1"
	}
	for _, text := range resources {
		r, err := ParseResource(text)
		if err != nil {
			k.Fatal(err)
		}
		o.Resources = append(o.Resources, r)
	}
	d, err := New(o)
	if err != nil {
		k.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	k.Cleanup(func() {
		if o.Client != nil { // so that no devices are left for other tests' claims
			if err := d.Vanish(ctx); err != nil {
				k.Error(err)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			k.Errorf("the driver ended with: %v", err)
		}
	})
	return d
}

// eventually asks again and again, where nobody tells of changes.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited for %s: %v", what, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v, want one with %q", err, word)
		}
	}
}
