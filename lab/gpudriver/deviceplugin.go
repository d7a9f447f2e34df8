package gpudriver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	// kubeletSocket is where the kubelet takes registrations, in the directory of
	// the plugins' own sockets.
	kubeletSocket = "kubelet.sock"

	registerTimeout = 10 * time.Second
	// registerAgain is short because a socket is seen before its kubelet listens.
	registerAgain = 100 * time.Millisecond

	// maxSocketPath is the length that Linux has room for, one byte less than its
	// buffer.
	maxSocketPath = 107
)

// plugin is the device plugin of one resource.
type plugin struct {
	pluginapi.UnimplementedDevicePluginServer
	inventory *inventory
	resource  string
	dir       string
}

func (p *plugin) socket() string {
	return filepath.Join(p.dir, strings.ReplaceAll(p.resource, "/", "_")+".sock")
}

// run serves the kubelet until ctx ends. A kubelet that starts removes the sockets
// of all plugins and knows none: each time its own is made anew, so is the
// plugin's, and it registers again.
func (p *plugin) run(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch for kubelets: %w", err)
	}
	defer watcher.Close()
	if err := watcher.Add(p.dir); err != nil {
		return fmt.Errorf("watch %s for kubelets: %w", p.dir, err)
	}
	for ctx.Err() == nil {
		if err := p.serve(ctx, watcher); err != nil {
			return fmt.Errorf("device plugin of %s: %w", p.resource, err)
		}
	}
	return nil
}

// serve is one life of the plugin: it ends with ctx, or when there is a new kubelet.
func (p *plugin) serve(ctx context.Context, watcher *fsnotify.Watcher) error {
	listener, err := listen(p.socket())
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(server, p)
	var wg sync.WaitGroup
	failed := make(chan error, 1)
	wg.Go(func() { failed <- server.Serve(listener) })
	// Not gracefully: the kubelet's stream has no end. Stopping closes the
	// listener, and that removes the socket.
	defer wg.Wait()
	defer server.Stop()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { p.register(ctx) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fmt.Errorf("serve: %w", err)
		case event, ok := <-watcher.Events:
			if ok && event.Has(fsnotify.Create) && filepath.Base(event.Name) == kubeletSocket {
				return nil
			}
		case err := <-watcher.Errors:
			// Events were lost, and that of a new kubelet may be among them.
			klog.FromContext(ctx).Error(err, "Watching for kubelets", "dir", p.dir)
			return nil
		}
	}
}

// register registers with the kubelet, as soon as there is one. It is not waited for:
// a kubelet that has just removed the plugin's socket looks for it for ten seconds.
func (p *plugin) register(ctx context.Context) {
	for {
		err := p.registerOnce(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).V(4).Info("Could not register with the kubelet, trying again", "resource", p.resource, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(registerAgain):
		}
	}
}

func (p *plugin) registerOnce(ctx context.Context) error {
	conn, err := grpc.NewClient("unix:"+filepath.Join(p.dir, kubeletSocket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to kubelet: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{
		Version: pluginapi.Version, Endpoint: filepath.Base(p.socket()), ResourceName: p.resource, Options: &pluginapi.DevicePluginOptions{},
	})
	return err
}

// listen makes a socket, in place of one that a killed driver left.
func listen(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket %s: the path has %d bytes, and a socket's may have %d: use a shorter directory", path, len(path), maxSocketPath)
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	return listener, nil
}

// GetDevicePluginOptions says that the plugin has no special wishes.
func (p *plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

// ListAndWatch sends all devices, at once and whenever one has changed.
func (p *plugin) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		devices, changed := p.inventory.list()
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: p.advertise(devices)}); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-changed:
		}
	}
}

func (p *plugin) advertise(devices []Device) []*pluginapi.Device {
	list := []*pluginapi.Device{}
	for _, d := range devices {
		if d.Resource != p.resource {
			continue
		}
		health := pluginapi.Healthy
		if !d.Healthy {
			health = pluginapi.Unhealthy
		}
		for _, id := range d.ids() {
			list = append(list, &pluginapi.Device{ID: id, Health: health})
		}
	}
	return list
}

// Allocate tells a container which devices it has.
func (p *plugin) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	devices, _ := p.inventory.list()
	response := &pluginapi.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		env := map[string]string{}
		var uuids []string
		for _, id := range container.DevicesIds {
			d, ok := byID(devices, p.resource, id)
			if !ok {
				return nil, status.Errorf(codes.NotFound, "%s has no device %q", p.resource, id)
			}
			if !d.Healthy {
				return nil, status.Errorf(codes.FailedPrecondition, "device %s (%s) is unhealthy", d.Name, id)
			}
			if env[Variable(d.Name)] == "" { // two slots can be of one device
				env[Variable(d.Name)] = d.UUID
				uuids = append(uuids, d.UUID)
			}
		}
		env["NVIDIA_VISIBLE_DEVICES"] = strings.Join(uuids, ",")
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerAllocateResponse{Envs: env})
	}
	return response, nil
}
