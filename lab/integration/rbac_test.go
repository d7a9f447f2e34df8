package integration

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// binary is the controller as users build it, built once.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(os.TempDir(), "gpu-summary-controller-"+lab.Config().Host[len("https://127.0.0.1:"):])
	cmd := exec.Command("go", "build", "-o", path, "./cmd/gpu-summary-controller")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// user is somebody with exactly the given rules, and the kubeconfig to be them.
func (e *env) user(cluster, own []rbacv1.PolicyRule) (kubeconfig string) {
	e.Helper()
	name := "user-of-" + e.namespace
	config, err := e.plane.ConfigFor(name)
	e.must(err)
	meta := metav1.ObjectMeta{Name: name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
	rbac := e.client.RbacV1()
	_, err = rbac.ClusterRoles().Create(e.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: cluster}, metav1.CreateOptions{})
	e.must(err)
	_, err = rbac.ClusterRoleBindings().Create(e.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}, metav1.CreateOptions{})
	e.must(err)
	_, err = rbac.Roles(e.namespace).Create(e.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: own}, metav1.CreateOptions{})
	e.must(err)
	_, err = rbac.RoleBindings(e.namespace).Create(e.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}, metav1.CreateOptions{})
	e.must(err)
	e.Cleanup(func() {
		ctx := context.Background()
		if err := errors.Join(
			rbac.ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}),
			rbac.ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}),
		); err != nil {
			e.Errorf("clean up RBAC: %v", err)
		}
	})
	return e.kubeconfig(config)
}

func (e *env) kubeconfig(config *rest.Config) string {
	e.Helper()
	path := filepath.Join(e.TempDir(), "kubeconfig")
	e.must(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"lab": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"user": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"lab": {Cluster: "lab", AuthInfo: "user", Namespace: e.namespace}},
		CurrentContext: "lab",
	}, path))
	return path
}

// rules are those of the manifests, with the verbs that remain after one was
// taken away. "pods/watch" names a verb.
func (e *env) rules(without string) (cluster, own []rbacv1.PolicyRule) {
	e.Helper()
	roles := manifestRoles(e)
	cut := func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		var left []rbacv1.PolicyRule
		for _, rule := range rules {
			var verbs []string
			for _, verb := range rule.Verbs {
				if rule.Resources[0]+"/"+verb != without {
					verbs = append(verbs, verb)
				}
			}
			if rule.Verbs = verbs; len(verbs) > 0 {
				left = append(left, rule)
			}
		}
		return left
	}
	return cut(roles.cluster), cut(roles.own)
}

// TestEachMissingVerbIsNamed: the process ends non-zero and says what is missing.
// A list that works without a watch is the treacherous one: the cache fills once
// and stands still.
func TestEachMissingVerbIsNamed(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		without string
		said    []string
	}{
		{"pods/watch", []string{"cannot watch resource \"pods\"", `grant the verb "watch" on pods`}},
		{"nodes/watch", []string{"cannot watch resource \"nodes\"", `grant the verb "watch" on nodes`, "--watch-nodes=false"}},
		{"configmaps/watch", []string{"cannot watch resource \"configmaps\"", `grant the verb "watch" on configmaps`}},
	} {
		t.Run(strings.ReplaceAll(tc.without, "/", " without "), func(t *testing.T) {
			e := newEnv(t)
			e.node("gpu-1", 8)
			kubeconfig := e.user(e.rules(tc.without))
			var stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), path, "--kubeconfig", kubeconfig, "--cache-sync-timeout=3s", "--http-address=127.0.0.1:0")
			cmd.Stderr = &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ended with %v, want exit status 1", err)
			}
			last := stderr.String()[strings.LastIndex(stderr.String(), "gpu-summary-controller: ")+1:]
			for _, said := range tc.said {
				if !strings.Contains(last, said) {
					t.Errorf("the message does not say %q:\n%s", said, last)
				}
			}
			if _, err := e.configMap(); err == nil {
				t.Error("something was published from an incomplete cache")
			}
		})
	}
}

// TestTheManifestsAreEnough, and without nodes less is.
func TestTheManifestsAreEnough(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		without string
		flags   []string
		rows    string
	}{
		"all of them":   {rows: "gpu-1=2 gpu-2=0"},
		"without nodes": {"nodes/list nodes/watch", []string{"--watch-nodes=false"}, "gpu-1=2"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.node("gpu-1", 8)
			e.node("gpu-2", 8)
			e.bound("a", "gpu-1", 2)
			cluster, own := e.rules("")
			for without := range strings.FieldsSeq(tc.without) {
				resource, _, _ := strings.Cut(without, "/")
				for i := range cluster {
					if cluster[i].Resources[0] == resource {
						cluster[i].Verbs = []string{"get"}
					}
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			var stderr bytes.Buffer
			cmd := exec.CommandContext(ctx, path, append([]string{"--kubeconfig", e.user(cluster, own), "--http-address=127.0.0.1:0"}, tc.flags...)...)
			cmd.Stderr = &stderr
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
			e.must(cmd.Start())
			e.shows(tc.rows)
			e.bound("b", "gpu-1", 1)
			e.shows(strings.Replace(tc.rows, "gpu-1=2", "gpu-1=3", 1))
			e.must(e.client.CoreV1().ConfigMaps(e.namespace).Delete(t.Context(), "gpu-summary", metav1.DeleteOptions{}))
			e.shows(strings.Replace(tc.rows, "gpu-1=2", "gpu-1=3", 1))
			cancel()
			if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 0 {
				t.Errorf("SIGINT: %v\n%s", err, stderr.String())
			}
			if n := strings.Count(stderr.String(), "\nE"); n > 0 {
				t.Errorf("%d errors were logged:\n%s", n, stderr.String())
			}
		})
	}
}

// TestAMissingNamespaceIsNamed, and published to once it is there.
func TestAMissingNamespaceIsNamed(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(t)
	e.node("gpu-1", 8)
	missing := e.namespace + "-later"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &lines{}
	cmd := exec.CommandContext(ctx, path, "--kubeconfig", e.kubeconfig(e.plane.Config()), "--namespace", missing, "--http-address=127.0.0.1:0", "--settle=100ms")
	cmd.Stderr = stderr
	e.must(cmd.Start())
	defer func() { cancel(); _ = cmd.Wait() }()
	e.eventually("the error to be named", func() error {
		// Whether the log quotes the message depends on how many lines it has.
		said := strings.ReplaceAll(stderr.String(), `\"`, `"`)
		if !strings.Contains(said, `namespaces "`+missing+`" not found (create it, or choose another with --namespace)`) {
			return errors.New(said)
		}
		return nil
	})
	core := e.client.CoreV1()
	_, err = core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: missing}}, metav1.CreateOptions{})
	e.must(err)
	e.eventually("the ConfigMap", func() error {
		_, err := core.ConfigMaps(missing).Get(t.Context(), "gpu-summary", metav1.GetOptions{})
		return err
	})
	e.must(core.Namespaces().Delete(t.Context(), missing, metav1.DeleteOptions{}))
}

// lines is a buffer that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
