package gpudriver

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// deafKubelet takes a registration and never answers, like one that looks for a
// socket it has removed.
type deafKubelet struct {
	pluginapi.UnimplementedRegistrationServer
	called chan struct{}
	ended  chan error
}

func (d *deafKubelet) Register(ctx context.Context, _ *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	close(d.called)
	<-ctx.Done()
	d.ended <- ctx.Err()
	return nil, ctx.Err()
}

// TestNewKubeletBeforeTheOldAnswers: the plugin turns to the new one at once.
func TestNewKubeletBeforeTheOldAnswers(t *testing.T) {
	k := newKubelet(t)
	dir := filepath.Join(k.dir, "device-plugins")
	must(t, os.Mkdir(dir, 0o700))
	listener, err := net.Listen("unix", filepath.Join(dir, kubeletSocket))
	must(t, err)
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // the path is another's by then
	deaf := &deafKubelet{called: make(chan struct{}), ended: make(chan error, 1)}
	server := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(server, deaf)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	k.run(Options{}, gpu+"=8")
	<-deaf.called
	k.start() // takes the place of the other's socket
	if err := <-deaf.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the old kubelet was waited for: %v", err)
	}
	k.offers(gpu, 8, 8)
}
