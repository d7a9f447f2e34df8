package integration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-summary/gpu-summary-controller/lab/install"
	"github.com/gpu-summary/gpu-summary-controller/lab/release"
)

// accountDir is where a kubelet puts the token, and where client-go looks for it.
const accountDir = "var/run/secrets/kubernetes.io/serviceaccount"

// testInCluster runs the controller as the chart does, with what the image holds as
// the whole file system, without a capability, and with the chart's permissions. The
// pods are real, too, but for their containers: KWOK has none, and these processes
// take their place.
func testInCluster(t *testing.T, tools install.Tools) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	linux := []byte(`{"metadata":{"labels":{"kubernetes.io/os":"linux"}}}`)
	_, err := e.client.CoreV1().Nodes().Patch(t.Context(), "gpu-1", types.MergePatchType, linux, metav1.PatchOptions{})
	e.must(err)
	e.bound("a", "gpu-1", 2)

	s := newSite(e, tools, e.namespace+"-install")
	said, err := tools.Install(t.Context(), e.plane.Kubeconfig(), s.namespace, "publish: {settle: 200ms}")
	e.Cleanup(func() { e.must(tools.Uninstall(context.Background(), e.plane.Kubeconfig(), s.namespace)) })
	e.must(err)
	if notes := "gpu-summary is published in namespace " + s.namespace; !strings.Contains(said, notes) {
		t.Errorf("helm does not say %q:\n%s", notes, said)
	}

	prometheus := s.prometheus()
	replicas := s.replicas()
	s.shows("gpu-1=2")
	e.bound("b", "gpu-1", 1)
	s.shows("gpu-1=3")
	for _, r := range replicas {
		e.eventually("both to be ready", func() error { _, err := r.get("/readyz", ""); return err })
		if _, err := r.get("/metrics", ""); err == nil {
			t.Error("a stranger may read metrics")
		}
		r.wasNeverRefused(prometheus)
	}
	// Whichever of them led, the other does so now.
	replicas[0].end()
	e.bound("c", "gpu-1", 1)
	s.shows("gpu-1=4")
	replicas[1].wasNeverRefused(prometheus)
	replicas[1].end()
}

// inPod is a process in place of a pod's container.
type inPod struct {
	env    *env
	url    string
	cmd    *exec.Cmd
	stderr *lines
}

// prometheus is the token of an account that was let in as the chart suggests.
func (s site) prometheus() string {
	s.Helper()
	const reader = "gpu-summary-controller-metrics-reader"
	_, err := s.kubectl("", "create", "serviceaccount", "prometheus", "--namespace", s.namespace)
	s.must(err)
	_, err = s.kubectl("", "create", "clusterrolebinding", reader, "--clusterrole="+reader, "--serviceaccount="+s.namespace+":prometheus")
	s.must(err)
	s.Cleanup(func() {
		if _, err := s.kubectl("", "delete", "clusterrolebinding", reader); err != nil {
			s.Errorf("clean up: %v", err)
		}
	})
	token, err := s.kubectl("", "create", "token", "prometheus", "--namespace", s.namespace)
	s.must(err)
	return strings.TrimSpace(token)
}

// replicas starts a process for each pod of the Deployment.
func (s site) replicas() (started []*inPod) {
	s.Helper()
	apps, core := s.client.AppsV1(), s.client.CoreV1()
	deployment, err := apps.Deployments(s.namespace).Get(s.Context(), "gpu-summary-controller", metav1.GetOptions{})
	s.must(err)
	selector := metav1.FormatLabelSelector(deployment.Spec.Selector)
	pods, err := core.Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: selector})
	s.must(err)
	if len(pods.Items) != 2 {
		s.Fatalf("%d pods, want 2", len(pods.Items))
	}
	layout := s.image()
	for _, pod := range pods.Items {
		root := s.TempDir()
		entrypoint := s.unpack(layout, root)
		s.mountAccount(&pod, root)
		s.mayAll(deployment, root, entrypoint)
		started = append(started, s.inPod(deployment, root, entrypoint))
	}
	return started
}

// image builds the image for this machine.
func (s site) image() (layout string) {
	s.Helper()
	source := release.Source{Root: s.tools.Root, Version: "v0.0.0-test", Time: time.Unix(0, 0)}
	binaries, err := source.Binaries(s.Context(), []release.Platform{{OS: "linux", Arch: runtime.GOARCH}}, s.TempDir())
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

// inPod starts a process with the container's arguments and environment. Only the
// address is another: both are on this machine, which nobody else is to reach.
func (s site) inPod(deployment *appsv1.Deployment, root, entrypoint string) *inPod {
	s.Helper()
	container := deployment.Spec.Template.Spec.Containers[0]
	address := freeAddress(s.env)
	r := &inPod{env: s.env, url: "https://" + address, stderr: &lines{}}
	r.cmd = s.contained(s.Context(), deployment, root, append([]string{entrypoint}, append(container.Args, "--http-address="+address)...))
	r.cmd.Stderr = r.stderr
	s.must(r.cmd.Start())
	s.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
		if s.Failed() {
			s.Logf("a replica logged:\n%s", r.stderr)
		}
	})
	return r
}

// mayAll asks the API server what docs/install.md suggests to ask it.
func (s site) mayAll(deployment *appsv1.Deployment, root, entrypoint string) {
	s.Helper()
	cmd := s.contained(s.Context(), deployment, root, append([]string{entrypoint, "preflight"}, deployment.Spec.Template.Spec.Containers[0].Args...))
	if out, err := cmd.CombinedOutput(); errors.Is(err, os.ErrPermission) {
		s.Skipf("needs user namespaces, in which a process can have a file system of its own: %v", err)
	} else if err != nil {
		s.Errorf("preflight: %v\n%s", err, out)
	}
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

// insecure is a client for certificates that nobody vouches for.
var insecure = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
}}

// get reads over HTTP, with a token unless it is "".
func (r *inPod) get(path, token string) (string, error) {
	request, err := http.NewRequestWithContext(r.env.Context(), http.MethodGet, r.url+path, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := insecure.Do(request)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s\n%s", path, res.Status, body)
	}
	return string(body), err
}

var answered = regexp.MustCompile(`(?m)^rest_client_requests_total\{code="(\d+)",.*\} (\d+)$`)

// wasNeverRefused: the chart's permissions are enough.
func (r *inPod) wasNeverRefused(token string) {
	r.env.Helper()
	metrics, err := r.get("/metrics", token)
	r.env.must(err)
	answers := answered.FindAllStringSubmatch(metrics, -1)
	if len(answers) == 0 {
		r.env.Error("it is not known to have asked anything")
	}
	for _, answer := range answers {
		if answer[1] == "401" || answer[1] == "403" {
			r.env.Errorf("%s requests were answered with %s", answer[2], answer[1])
		}
	}
}

// end does what a kubelet does to end a pod.
func (r *inPod) end() {
	r.env.Helper()
	r.env.must(r.cmd.Process.Signal(syscall.SIGTERM))
	ended := make(chan error, 1)
	go func() { ended <- r.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			r.env.Errorf("SIGTERM: %v", err)
		}
	case <-time.After(patience):
		r.env.Error("it does not end")
	}
	if n := strings.Count("\n"+r.stderr.String(), "\nE"); n > 0 {
		r.env.Errorf("%d errors were logged:\n%s", n, r.stderr)
	}
}
