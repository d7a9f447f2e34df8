package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/install"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// site is where the chart is installed.
type site struct {
	namespace string
	publish   string // the chart's publish.name
	chart     string // its folder
}

func (s site) controller() string { return s.publish + "-controller" }

// values are those of a lab: where the image is, and that pods go where containers run.
// Nodes are told about soon, and not after half a minute.
func (s site) values(more string) string {
	return fmt.Sprintf(`
image: {repository: %s, tag: %s, pullPolicy: Never}
nodeSelector: {%s: "true"}
publish: {name: %s}
verbosity: 2
extraArgs: [--event-delay=2s]
`, repository, tag, plane.RealNodeLabel, s.publish) + more
}

// common is the installation that most tests look at.
var common = sync.OnceValues(func() (site, error) {
	s := site{namespace: "gpu-summary", publish: "gpu-summary", chart: lab.tools.Chart()}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.makeNamespace(ctx); err != nil {
		return s, err
	}
	step("installing the chart")
	if _, err := s.helm(ctx, "install", s.values("")); err != nil {
		return s, err
	}
	if err := s.atWork(ctx, 2); err != nil {
		return s, err
	}
	step("the chart is installed")
	return s, nil
})

// installed returns the common installation, which the first test makes.
func installed(t testing.TB) site {
	t.Helper()
	s, err := common()
	if err != nil {
		t.Fatalf("install the chart: %v", err)
	}
	return s
}

// makeNamespace makes one that admits nothing that is not restricted.
func (s site) makeNamespace(ctx context.Context) error {
	_, err := lab.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: s.namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	return err
}

// helm installs or upgrades. It does not wait for replicas: atWork does, and knows
// more about what keeps them.
func (s site) helm(ctx context.Context, command, values string) (string, error) {
	return s.run(ctx, lab.tools.Helm, values, command, install.Release, s.chart, "--namespace", s.namespace, "--values", "-", "--kubeconfig", lab.plane.Kubeconfig())
}

// uninstall does what docs/install.md says.
func (s site) uninstall(ctx context.Context) error {
	_, err := s.run(ctx, lab.tools.Helm, "", "uninstall", install.Release, "--namespace", s.namespace, "--wait", "--timeout", "2m", "--kubeconfig", lab.plane.Kubeconfig())
	return err
}

// kubectl runs kubectl as the administrator.
func kubectl(ctx context.Context, args ...string) (string, error) {
	return site{}.run(ctx, lab.tools.Kubectl, "", append([]string{"--kubeconfig", lab.plane.Kubeconfig()}, args...)...)
}

func (site) run(ctx context.Context, program, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	// Not the user's plugins, repositories and caches.
	cmd.Env = append(os.Environ(), "HOME="+lab.dir, "HELM_NO_PLUGINS=1", "HELM_CONFIG_HOME=/nonexistent", "HELM_CACHE_HOME=/nonexistent", "HELM_DATA_HOME=/nonexistent")
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), nil
}

// pods are the replicas that are not being deleted, none if they cannot be listed.
func (s site) pods(ctx context.Context) []corev1.Pod {
	list, err := lab.client.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + s.publish})
	if err != nil {
		return nil
	}
	var pods []corev1.Pod
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// atWork waits until so many replicas are ready and one of them has published.
func (s site) atWork(ctx context.Context, replicas int) error {
	return eventually(ctx, func() error { return s.working(ctx, replicas) })
}

// working says what keeps the replicas from being ready, or the leader from having
// published.
func (s site) working(ctx context.Context, replicas int) error {
	deployment, err := lab.client.AppsV1().Deployments(s.namespace).Get(ctx, s.controller(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := complete(deployment, replicas); err != nil {
		return errors.Join(append(s.trouble(ctx), err)...)
	}
	leader, err := s.leader(ctx)
	if err != nil {
		return err
	}
	cm, err := s.configMap(ctx)
	if err != nil {
		return fmt.Errorf("%s leads, but: %w", leader.Name, err)
	}
	if _, ok := cm.Data[lab.node.Name()]; !ok {
		return fmt.Errorf("ConfigMap %s has no row of the node: %v", cm.Name, cm.Data)
	}
	return nil
}

// complete returns an error unless all replicas are of the Deployment's last version
// and ready.
func complete(d *appsv1.Deployment, replicas int) error {
	s := d.Status
	if n := int32(replicas); s.ObservedGeneration != d.Generation || s.UpdatedReplicas != n || s.ReadyReplicas != n || s.Replicas != n {
		return fmt.Errorf("of %d replicas %d are new and %d ready", s.Replicas, s.UpdatedReplicas, s.ReadyReplicas)
	}
	return nil
}

// trouble is what pods and Events say about why replicas are not ready.
func (s site) trouble(ctx context.Context) (found []error) {
	for _, p := range s.pods(ctx) {
		found = append(found, errors.New(describe(&p)))
	}
	events, err := lab.client.CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil {
		return append(found, err)
	}
	for _, event := range events.Items {
		found = append(found, fmt.Errorf("%s %s: %s: %s", event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message))
	}
	return found
}

// leader is the pod that holds the lease.
func (s site) leader(ctx context.Context) (*corev1.Pod, error) {
	lease, err := lab.client.CoordinationV1().Leases(s.namespace).Get(ctx, s.controller(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return nil, errors.New("nobody holds the lease")
	}
	for _, p := range s.pods(ctx) {
		if strings.HasPrefix(*lease.Spec.HolderIdentity, p.Name) {
			return &p, nil
		}
	}
	return nil, fmt.Errorf("the lease is held by %s, which is no pod", *lease.Spec.HolderIdentity)
}

func (s site) configMap(ctx context.Context) (*corev1.ConfigMap, error) {
	return lab.client.CoreV1().ConfigMaps(s.namespace).Get(ctx, s.publish, metav1.GetOptions{})
}
