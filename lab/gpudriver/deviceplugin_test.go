package gpudriver

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	gpu    = "nvidia.com/gpu"
	shared = "nvidia.com/gpu.shared"
	mig    = "nvidia.com/mig-1g.5gb"
)

func TestKubeletIsOfferedEachResource(t *testing.T) {
	k := newKubelet(t)
	k.start()
	d := k.run(Options{}, gpu+"=8", mig+"=14", shared+"=2x4")
	k.offers(gpu, 8, 8)
	k.offers(mig, 14, 14)
	k.offers(shared, 8, 8)

	for _, step := range []struct {
		device  string
		healthy bool
		want    map[string]int
	}{
		{"gpu-3", false, map[string]int{gpu: 7, mig: 14, shared: 8}},
		{"gpu-9", false, map[string]int{gpu: 7, mig: 7, shared: 8}}, // a GPU cut into seven
		{"gpu-8-mig-1g-5gb-6", false, map[string]int{gpu: 7, mig: 6, shared: 8}},
		{"gpu-10", false, map[string]int{gpu: 7, mig: 6, shared: 4}}, // four slots of one GPU
		{"gpu-9", true, map[string]int{gpu: 7, mig: 13, shared: 4}},
		{"gpu-3", true, map[string]int{gpu: 8, mig: 13, shared: 4}},
	} {
		must(t, d.SetHealthy(step.device, step.healthy))
		for resource, all := range map[string]int{gpu: 8, mig: 14, shared: 8} {
			k.offers(resource, step.want[resource], all)
		}
	}
	wantError(t, d.SetHealthy("gpu-99", false), "gpu-99", "24, from gpu-0 to gpu-11")
}

func TestContainersFindTheirDevices(t *testing.T) {
	k := newKubelet(t)
	k.start()
	d := k.run(Options{}, gpu+"=2", shared+"=1x4")
	k.offers(gpu, 2, 2)
	k.offers(shared, 4, 4)
	devices := d.Devices()
	zero, one, two := devices[0], devices[1], devices[2]

	env, err := k.allocate(gpu, one.UUID, zero.UUID)
	must(t, err)
	want := map[string]string{
		"GPU_SUMMARY_DEVICE_GPU_0": zero.UUID, "GPU_SUMMARY_DEVICE_GPU_1": one.UUID,
		"NVIDIA_VISIBLE_DEVICES": one.UUID + "," + zero.UUID,
	}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	// A slot is the device it is a slot of, and two of them are one device.
	env, err = k.allocate(shared, two.UUID+"::3", two.UUID+"::0")
	must(t, err)
	if diff := cmp.Diff(map[string]string{"GPU_SUMMARY_DEVICE_GPU_2": two.UUID, "NVIDIA_VISIBLE_DEVICES": two.UUID}, env); diff != "" {
		t.Errorf("environment of a shared device (-want +got):\n%s", diff)
	}

	must(t, d.SetHealthy(zero.Name, false))
	_, err = k.allocate(gpu, zero.UUID)
	wantError(t, err, "gpu-0", "unhealthy")
	for _, id := range []string{"GPU-0", two.UUID, two.UUID + "::0", zero.UUID + "::0"} {
		_, err = k.allocate(gpu, id)
		wantError(t, err, gpu+" has no device", id)
	}
	_, err = k.allocate(shared, two.UUID+"::4")
	wantError(t, err, "no device")
}

// TestKubeletRestarts: a kubelet that starts knows no plugin and removes their
// sockets.
func TestKubeletRestarts(t *testing.T) {
	k := newKubelet(t)
	d := k.run(Options{}, gpu+"=8", shared+"=1x4") // is there before the first kubelet
	k.start()
	k.offers(gpu, 8, 8)
	k.offers(shared, 4, 4)
	must(t, d.SetHealthy("gpu-3", false))
	k.offers(gpu, 7, 8)
	before := k.ids()
	for range 3 {
		k.stop()
		k.gone(gpu)
		k.gone(shared)
		k.start()
		k.offers(gpu, 7, 8)
		k.offers(shared, 4, 4)
	}
	if diff := cmp.Diff(before, k.ids()); diff != "" {
		t.Errorf("other devices than before (-before +after):\n%s", diff)
	}
}

// ids are those of the GPUs.
func (k *kubelet) ids() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.devices[gpu]))
}

func TestVanishAndReturn(t *testing.T) {
	k := newKubelet(t)
	k.start()
	d := k.run(Options{}, gpu+"=8", mig+"=7")
	k.offers(gpu, 8, 8)
	k.offers(mig, 7, 7)
	for range 2 { // the second time changes nothing
		must(t, d.Vanish(t.Context()))
		if left := k.sockets(); len(left) > 0 {
			t.Errorf("sockets left: %v", left)
		}
		k.gone(gpu)
		k.gone(mig)
	}
	must(t, d.SetHealthy("gpu-0", false)) // is found at its return
	k.stop()
	k.start() // and a new kubelet finds nobody
	must(t, d.Return(t.Context()))
	k.offers(gpu, 7, 8)
	k.offers(mig, 7, 7)
}

func TestRestart(t *testing.T) {
	k := newKubelet(t)
	k.start()
	d := k.run(Options{}, gpu+"=2")
	k.offers(gpu, 2, 2)
	before := k.ids()
	must(t, d.Restart(t.Context()))
	k.await("the plugin's second life", func() error {
		if k.lives[gpu] < 2 {
			return errNotYet
		}
		return nil
	})
	k.offers(gpu, 2, 2)
	if diff := cmp.Diff(before, k.ids()); diff != "" {
		t.Errorf("other devices than before (-before +after):\n%s", diff)
	}
}

func TestPathTooLongForASocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	must(t, os.Mkdir(dir, 0o700))
	d, err := New(Options{Node: "n1", KubeletDir: dir, Resources: []Resource{{Name: gpu, Count: 1}}})
	must(t, err)
	wantError(t, d.Run(t.Context()), dir, "a socket's may have 107", "shorter directory")
}
