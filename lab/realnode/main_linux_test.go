package realnode

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
	"github.com/gpu-summary/gpu-summary-controller/lab/testkit"
)

// shared is the node that most tests use, in the plane sharedPlane.
var (
	shared      *Node
	sharedPlane *plane.Plane
)

// testImage is testprogram, in an image.
const testImage = "docker.io/local/test:1"

// helperEnv makes this binary a program that starts a node and waits to be killed.
const helperEnv = "GPU_SUMMARY_LAB_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		helper()
	}
	if Check() != nil {
		os.Exit(m.Run()) // tests skip by name
	}
	os.Exit(runOnNode(m))
}

func runOnNode(m *testing.M) int {
	return plane.Main(onNode{m}, plane.Options{RealNode: true}, func(p *plane.Plane) { sharedPlane = p })
}

type onNode struct{ m *testing.M }

// Run starts the node on the plane, runs the tests and stops the node.
func (o onNode) Run() int {
	begin := time.Now()
	ctx := context.Background()
	node, err := Start(ctx, Options{Plane: sharedPlane, Progress: os.Stderr})
	if err != nil {
		fmt.Fprintf(os.Stderr, "start node: %v\n", err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "node ready after %s\n", time.Since(begin).Round(100*time.Millisecond))
	if err := loadTestImage(ctx, node); err != nil {
		fmt.Fprintf(os.Stderr, "load test image: %v\n", err)
		_ = node.Stop()
		return 1
	}
	shared = node
	code := o.m.Run()
	if err := node.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stop node: %v\n", err)
		return max(code, 1)
	}
	return code
}

func loadTestImage(ctx context.Context, n *Node) error {
	dir, err := os.MkdirTemp("", "testprogram")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "testprogram")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", program, "./testprogram")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build testprogram: %w\n%s", err, out)
	}
	return n.LoadProgram(ctx, testImage, program)
}

// labNode returns the shared node, or skips the test and says what is missing.
func labNode(t *testing.T) *Node {
	t.Helper()
	if err := Check(); err != nil {
		t.Skip(err)
	}
	return shared
}

func client(t *testing.T) kubernetes.Interface {
	t.Helper()
	return clientOf(t, sharedPlane)
}

func clientOf(t *testing.T, p *plane.Plane) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// namespace makes one in which Pod Security asks for the most.
func namespace(t *testing.T) string {
	t.Helper()
	namespaces := client(t).CoreV1().Namespaces()
	made, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = namespaces.Delete(context.Background(), made.Name, metav1.DeleteOptions{})
	})
	return made.Name
}

// pod is one of the test program on the shared node, restricted as much as can be.
func pod(name string, args ...string) *corev1.Pod { return podOn(DefaultName, name, args...) }

func podOn(node, name string, args ...string) *corev1.Pod {
	no, yes, user := false, true, int64(65532)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName:      node,
			RestartPolicy: corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "test", Image: testImage, Args: args, ImagePullPolicy: corev1.PullNever,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// run creates the pod and waits for its phase.
func run(t *testing.T, namespace string, pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	t.Helper()
	pods := client(t).CoreV1().Pods(namespace)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var now *corev1.Pod
	testkit.Eventually(t, fmt.Sprintf("pod %s to be %s", pod.Name, phase), func(ctx context.Context) (err error) {
		if now, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		if now.Status.Phase != phase {
			return fmt.Errorf("%s %s%v", now.Status.Phase, now.Status.Message, now.Status.ContainerStatuses)
		}
		return nil
	})
	return now
}

func logOf(t *testing.T, namespace, pod string) string {
	t.Helper()
	text, err := client(t).CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("read the log of %s: %v", pod, err)
	}
	return strings.TrimSpace(string(text))
}
