package integration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/release"
)

// accountDir is where a kubelet puts the token, and where client-go looks for it.
const accountDir = "var/run/secrets/kubernetes.io/serviceaccount"

// image builds the image for this machine.
func (s site) image() (layout string) {
	s.Helper()
	source := release.Source{Root: s.tools.Root, Version: "v0.0.0-test", Time: time.Unix(0, 0)}
	binaries, err := source.Binaries(s.Context(), release.Controller, []release.Platform{{OS: "linux", Arch: runtime.GOARCH}}, s.TempDir())
	s.must(err)
	layout = filepath.Join(s.TempDir(), "image")
	_, err = source.Image(binaries, layout)
	s.must(err)
	return layout
}

// descriptor refers to a part of an image.
type descriptor struct{ Digest string }

// unpack makes a file system of the first image of a layout, and returns what it
// starts with.
func (s site) unpack(layout, root string) (entrypoint string) {
	s.Helper()
	read := func(path string, into any) {
		text, err := os.ReadFile(filepath.Join(layout, path))
		s.must(err)
		s.must(json.Unmarshal(text, into))
	}
	blob := func(d descriptor) string { return filepath.Join("blobs", strings.ReplaceAll(d.Digest, ":", "/")) }
	var index, images struct{ Manifests []descriptor }
	var image struct {
		Config descriptor
		Layers []descriptor
	}
	var config struct{ Config struct{ Entrypoint []string } }
	read("index.json", &index)
	read(blob(index.Manifests[0]), &images)
	read(blob(images.Manifests[0]), &image)
	read(blob(image.Config), &config)
	for _, layer := range image.Layers {
		content, err := os.ReadFile(filepath.Join(layout, blob(layer)))
		s.must(err)
		plain, err := gzip.NewReader(bytes.NewReader(content))
		s.must(err)
		for files := tar.NewReader(plain); ; {
			header, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			s.must(err)
			text, err := io.ReadAll(files)
			s.must(err)
			s.must(os.WriteFile(filepath.Join(root, header.Name), text, header.FileInfo().Mode()))
		}
	}
	return config.Config.Entrypoint[0]
}

// mountAccount does a kubelet's part: a token that is bound to the pod, and what the
// controller manager publishes in each namespace.
func (s site) mountAccount(pod *corev1.Pod, root string) {
	s.Helper()
	core := s.client.CoreV1()
	seconds := int64(3607) // as kubelets ask for
	token, err := core.ServiceAccounts(s.namespace).CreateToken(s.Context(), pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	ca, err := core.ConfigMaps(s.namespace).Get(s.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	s.must(err)
	dir := filepath.Join(root, accountDir)
	s.must(os.MkdirAll(dir, 0o755))
	for name, text := range map[string]string{"token": token.Status.Token, "ca.crt": ca.Data["ca.crt"], "namespace": s.namespace} {
		s.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o444))
	}
	// Read-only, for everybody who has no capability to disregard it.
	s.must(os.Chmod(root, 0o555))
	s.Cleanup(func() { _ = os.Chmod(root, 0o755) })
}

// contained is a command in a pod's container: as the user of the pod, with root as
// the file system, and no variable but those that kubelets and the chart set.
func (s site) contained(ctx context.Context, deployment *appsv1.Deployment, root string, args []string) *exec.Cmd {
	s.Helper()
	pod := deployment.Spec.Template.Spec
	server, err := url.Parse(s.plane.Config().Host)
	s.must(err)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = []string{"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port()}
	for _, env := range pod.Containers[0].Env {
		cmd.Env = append(cmd.Env, env.Name+"="+env.Value)
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:      root,
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: int(*pod.SecurityContext.RunAsUser), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: int(*pod.SecurityContext.RunAsGroup), HostID: os.Getgid(), Size: 1}},
	}
	return cmd
}
