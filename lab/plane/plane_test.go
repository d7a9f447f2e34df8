package plane_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

func TestComponentKilledFromOutsideIsReported(t *testing.T) {
	p := labPlane(t)
	scheduler := p.Component(plane.Scheduler)
	if err := syscall.Kill(scheduler.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.Failed():
		var exit *plane.ExitError
		if !errors.As(err, &exit) || exit.Component != plane.Scheduler {
			t.Errorf("Failed() delivered %v, want an ExitError of %s", err, plane.Scheduler)
		}
		for _, want := range []string{plane.Scheduler, "signal: killed", "last lines of its log"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error does not contain %q: %v", want, err)
			}
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing on Failed() within 30 s of the kill")
	}
	if pid := scheduler.Pid(); pid != 0 {
		t.Errorf("Pid() is %d after the end, want 0", pid)
	}
	if err := scheduler.Start(t.Context()); err != nil {
		t.Fatalf("start it again: %v", err)
	}
}

func TestPauseMakesTheServerHangAndResumeEndsThat(t *testing.T) {
	client := labClient(t)
	server := labPlane(t).Component(plane.APIServer)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := listNamespaces(ctx, client); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("list on a paused server: %v, want no answer", err)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := server.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := listNamespaces(t.Context(), client); err != nil {
		t.Errorf("list after Resume: %v", err)
	}
}

func TestRestartOfTheAPIServer(t *testing.T) {
	p, client := labPlane(t), labClient(t)
	server := p.Component(plane.APIServer)
	before, url := server.Pid(), server.URL()
	// A paused server has to stop as well.
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := server.Pid(); after == before || after == 0 {
		t.Errorf("process id is %d after the restart, was %d", after, before)
	}
	if server.URL() != url {
		t.Errorf("URL is %s after the restart, was %s", server.URL(), url)
	}
	if err := listNamespaces(t.Context(), client); err != nil {
		t.Errorf("list after the restart: %v", err)
	}
	select {
	case err := <-p.Failed():
		t.Errorf("a restart counts as a failure: %v", err)
	default:
	}
}

func TestRestartedKWOKPlaysOnAtOnce(t *testing.T) {
	client := labClient(t)
	node := newNode(t, client, corev1.ResourceList{gpu: resource.MustParse("8")})
	if err := labPlane(t).Component(plane.KWOK).Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Well below the 200 s its predecessor's leases would last.
	pod := newPod(t, client, "after-restart", func(p *corev1.Pod) { p.Spec.NodeName = node.Name })
	awaitPhase(t, client, pod.Name, corev1.PodRunning)
}

func TestSecondAPIServerSeesTheSameObjects(t *testing.T) {
	p := labPlane(t)
	name := unique("kube-apiserver")
	second, config, err := p.AddAPIServer(t.Context(), name, "--v=1")
	if err != nil {
		t.Fatal(err)
	}
	created := newConfigMap(t, labClient(t), "seen-by-both")
	seen, err := clientOf(t, config).CoreV1().ConfigMaps("default").Get(t.Context(), created.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if seen.UID != created.UID {
		t.Errorf("the second server has UID %s, the first %s", seen.UID, created.UID)
	}
	if config.Host == p.Config().Host {
		t.Errorf("both servers are at %s", config.Host)
	}
	if p.Component(name) != second {
		t.Error("Component does not find the second server")
	}
	if _, _, err := p.AddAPIServer(t.Context(), name); err == nil {
		t.Error("a third server under the name of the second was accepted")
	}
	pid := second.Pid()
	if err := second.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("the second server is there after Stop")
	}
}

func TestTakenPortIsNoFailure(t *testing.T) {
	p := labPlane(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	name := unique("second-try")
	if err := p.AddWithPortTaken(t.Context(), name, l.Addr().(*net.TCPAddr).Port); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Component(name).Stop(context.Background()) })
	select {
	case err := <-p.Failed():
		t.Errorf("the first try counts as a failure: %v", err)
	default:
	}
	// Ctrl-C goes to a whole process group: this one must not be ours.
	pid := p.Component(name).Pid()
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("process %d is in group %d (%v), want one of its own", pid, group, err)
	}
}

func TestUserHasOnlyTheRightsOfRBAC(t *testing.T) {
	config, err := labPlane(t).ConfigFor("nobody-in-particular", "some-group")
	if err != nil {
		t.Fatal(err)
	}
	err = listNamespaces(t.Context(), clientOf(t, config))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "nobody-in-particular"`) {
		t.Errorf("list without rights: %v, want Forbidden naming the user", err)
	}
}

func TestTwoPlanesSideBySideAndStop(t *testing.T) {
	first := labClient(t)
	dir := filepath.Join(t.TempDir(), "state")
	p, err := plane.Start(t.Context(), plane.Options{Dir: dir, Audit: true, Without: []string{plane.KWOK}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	created := newConfigMap(t, clientOf(t, p.Config()), "only-in-the-second")
	_, err = first.CoreV1().ConfigMaps("default").Get(t.Context(), created.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get from the other plane: %v, want NotFound", err)
	}
	if p.Component(plane.KWOK) != nil {
		t.Error("KWOK runs although it was to be left out")
	}
	audit, err := os.ReadFile(p.AuditLog())
	if err != nil || !strings.Contains(string(audit), created.Name) {
		t.Errorf("audit log does not mention %s (read: %v)", created.Name, err)
	}

	pids := pidsOf(p)
	if err := p.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := gone(pids); err != nil {
		t.Errorf("after Stop %v", err)
	}
	for _, c := range p.Components() {
		if c.Pid() != 0 {
			t.Errorf("%s counts as running after Stop", c.Name())
		}
	}
	select {
	case err := <-p.Failed():
		// They would die with the spawner too, but not in order.
		t.Errorf("a component ended before it was asked to: %v", err)
	default:
	}
	if exists(dir) {
		t.Errorf("%s is there after Stop", dir)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("second stop: %v", err)
	}
	if err := listNamespaces(t.Context(), first); err != nil {
		t.Errorf("the other plane does not answer: %v", err)
	}
}

func TestFailedStartSaysWhatFailedAndLeavesNothing(t *testing.T) {
	labPlane(t) // with -short nothing is built
	dir := filepath.Join(t.TempDir(), "state")
	_, err := plane.Start(t.Context(), plane.Options{
		Dir:        dir,
		ExtraFlags: map[string][]string{plane.Etcd: {"--no-such-flag"}},
	})
	if err == nil {
		t.Fatal("a plane with a wrong flag started")
	}
	for _, want := range []string{"etcd ended by itself", "no-such-flag"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not contain %q: %v", want, err)
		}
	}
	if exists(dir) {
		t.Errorf("%s is there after a failed start", dir)
	}
}

func listNamespaces(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

func newConfigMap(t *testing.T, client kubernetes.Interface, name string) *corev1.ConfigMap {
	t.Helper()
	created, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The plane may be gone by now, and the object with it.
		_ = client.CoreV1().ConfigMaps("default").Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	return created
}
