package gpudriver

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// listing is a kubelet that says of one pod which CDI devices its containers have.
type listing struct {
	podresources.UnimplementedPodResourcesListerServer
	containers map[string][]string
}

func (l listing) Get(_ context.Context, r *podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
	if r.PodNamespace != "ns" || r.PodName != "pod" {
		return nil, status.Errorf(codes.NotFound, "no pod %s/%s", r.PodNamespace, r.PodName)
	}
	pod := &podresources.PodResources{}
	for name, ids := range l.containers {
		claim := &podresources.ClaimResource{}
		for _, id := range ids {
			claim.CdiDevices = append(claim.CdiDevices, &podresources.CDIDevice{Name: id})
		}
		pod.Containers = append(pod.Containers, &podresources.ContainerResources{
			Name: name, DynamicResources: []*podresources.DynamicResource{{ClaimResources: []*podresources.ClaimResource{claim}}},
		})
	}
	return &podresources.GetPodResourcesResponse{PodResources: pod}, nil
}

// TestRuntimeAddsDevices of the container that is created, and nothing else.
func TestRuntimeAddsDevices(t *testing.T) {
	dir := t.TempDir()
	spec := `{"cdiVersion": "0.3.0", "kind": "k8s.gpu.nvidia.com/claim", "devices": [
		{"name": "a-1-0", "containerEdits": {"env": ["GPU_SUMMARY_DEVICE_GPU_0=GPU-zero"]}},
		{"name": "a-1-1", "containerEdits": {"env": ["GPU_SUMMARY_DEVICE_GPU_1=GPU-one", "GPU_SUMMARY_ADMIN_ACCESS=true"]}}]}`
	must(t, os.WriteFile(filepath.Join(dir, cdiPrefix+"a-1.json"), []byte(spec), 0o600))
	r := Runtime{PodResources: filepath.Join(dir, "kubelet.sock"), CDIDirs: []string{filepath.Join(dir, "none"), dir}}
	listener, err := net.Listen("unix", r.PodResources)
	must(t, err)
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, listing{containers: map[string][]string{
		"both": {"k8s.gpu.nvidia.com/claim=a-1-0", "example.com/nic=b-0", "k8s.gpu.nvidia.com/claim=a-1-1"},
		"one":  {"k8s.gpu.nvidia.com/claim=a-1-1"},
		"lost": {"k8s.gpu.nvidia.com/claim=c-0"},
		"none": nil,
	}})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	for _, test := range []struct {
		kind, pod, container string
		want                 []string
		wantError            string
	}{
		{kind: "container", pod: "pod", container: "both", want: []string{"GPU_SUMMARY_DEVICE_GPU_0=GPU-zero", "GPU_SUMMARY_DEVICE_GPU_1=GPU-one", "GPU_SUMMARY_ADMIN_ACCESS=true"}},
		{kind: "container", pod: "pod", container: "one", want: []string{"GPU_SUMMARY_DEVICE_GPU_1=GPU-one", "GPU_SUMMARY_ADMIN_ACCESS=true"}},
		{kind: "container", pod: "pod", container: "none"},
		{kind: "container", pod: "pod", container: "init"},
		{kind: "sandbox", pod: "pod", container: "both"},
		{kind: "container", pod: "pod", container: "lost", wantError: "no CDI specification of k8s.gpu.nvidia.com/claim=c-0"},
		{kind: "container", pod: "gone", container: "both", wantError: "no pod ns/gone"},
	} {
		t.Run(test.kind+" "+test.container+" of "+test.pod, func(t *testing.T) {
			config := map[string]any{
				"process":     map[string]any{"env": []any{"PATH=/bin"}, "args": []any{"c"}},
				"annotations": map[string]any{"io.kubernetes.cri.container-type": test.kind, "io.kubernetes.cri.sandbox-namespace": "ns", "io.kubernetes.cri.sandbox-name": test.pod, "io.kubernetes.cri.container-name": test.container},
				// No float has this value.
				"linux": map[string]any{"limit": json.Number("9223372036854775807")},
			}
			bundle := t.TempDir()
			file := filepath.Join(bundle, "config.json")
			data, err := json.Marshal(config)
			must(t, err)
			must(t, os.WriteFile(file, data, 0o600))
			err = r.amend(t.Context(), bundle)
			if test.wantError != "" {
				wantError(t, err, test.wantError)
			} else {
				must(t, err)
			}
			env := []any{"PATH=/bin"}
			for _, variable := range test.want {
				env = append(env, variable)
			}
			config["process"].(map[string]any)["env"] = env
			want, err := json.Marshal(config)
			must(t, err)
			got, err := os.ReadFile(file)
			must(t, err)
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichCallsCreateAContainer(t *testing.T) {
	for want, args := range map[string][]string{
		"/b": {"--root", "/r", "--log", "/l", "--log-format", "json", "create", "--bundle", "/b", "--pid-file", "/p", "id"},
		"/c": {"create", "--bundle=/c", "id"},
		"/d": {"create", "-b", "/d", "id"},
		".":  {"create", "id"},
		"":   {"--root", "/r", "start", "id"},
	} {
		if got := bundleToCreate(args); got != want {
			t.Errorf("%v creates from %q, want %q", args, got, want)
		}
	}
}

// TestRuntimeFindsTheOtherRunc, not itself by another name.
func TestRuntimeFindsTheOtherRunc(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	front, behind := t.TempDir(), t.TempDir()
	must(t, os.Symlink(self, filepath.Join(front, RuntimeName)))
	t.Setenv("PATH", front+string(os.PathListSeparator)+behind)
	_, err = NewRuntime()
	wantError(t, err, "no runc in PATH besides this one")
	other := filepath.Join(behind, RuntimeName)
	must(t, os.WriteFile(other, []byte("#!/bin/sh\n"), 0o700))
	r, err := NewRuntime()
	must(t, err)
	if r.Runc != other {
		t.Errorf("found %q, want %q", r.Runc, other)
	}
}
