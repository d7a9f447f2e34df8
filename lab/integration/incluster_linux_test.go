package integration

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-summary/gpu-summary-controller/lab/install"
)

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
	if out, err := cmd.CombinedOutput(); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		s.Skipf("needs user namespaces, in which a process can have a file system of its own: %v", err)
	} else if err != nil {
		s.Errorf("preflight: %v\n%s", err, out)
	}
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
