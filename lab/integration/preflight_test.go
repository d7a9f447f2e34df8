package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/gpu-summary/gpu-summary-controller/internal/preflight"
	"github.com/gpu-summary/gpu-summary-controller/lab/kube"
)

// permission is one verb that the manifests grant.
type permission struct {
	rule    rbacv1.PolicyRule // with one resource and one verb
	cluster bool
}

func (p permission) String() string { return p.rule.Resources[0] + "/" + p.rule.Verbs[0] }

// permissions are those of the manifests, one by one.
func (e *env) permissions() (list []permission) {
	e.Helper()
	roles := manifestRoles(e)
	for _, cluster := range []bool{true, false} {
		rules := roles.own
		if cluster {
			rules = roles.cluster
		}
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					one := rule.DeepCopy()
					one.Resources, one.Verbs = []string{resource}, []string{verb}
					list = append(list, permission{rule: *one, cluster: cluster})
				}
			}
		}
	}
	return list
}

// grant lets the user of this test have these permissions and no others.
func (e *env) grant(list []permission) {
	e.Helper()
	name := "user-of-" + e.namespace
	cluster := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	own := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.namespace}}
	for _, p := range list {
		if p.cluster {
			cluster.Rules = append(cluster.Rules, p.rule)
		} else {
			own.Rules = append(own.Rules, p.rule)
		}
	}
	_, err := e.client.RbacV1().ClusterRoles().Update(e.Context(), cluster, metav1.UpdateOptions{})
	e.must(err)
	_, err = e.client.RbacV1().Roles(e.namespace).Update(e.Context(), own, metav1.UpdateOptions{})
	e.must(err)
}

// preflight runs the command and returns how it ended.
func (e *env) preflight(kubeconfig string, args ...string) (stdout, stderr string, status int) {
	e.Helper()
	path, err := binary()
	e.must(err)
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(e.Context(), path, append([]string{"preflight", "--kubeconfig", kubeconfig}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		e.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// TestPreflightNamesEachVerb: each verb of the manifests is taken away in turn, and
// that verb is the answer, in the table, the rules and the exit status. Nothing is
// lost with DRA but DRA.
func TestPreflightNamesEachVerb(t *testing.T) {
	e := newEnv(t)
	all := e.permissions()
	kubeconfig := e.user(nil, nil)
	config, err := e.plane.ConfigFor("user-of-" + e.namespace)
	e.must(err)
	client, err := kubernetes.NewForConfig(config)
	e.must(err)
	e.grantEvents("default")
	needs := preflight.Options{Namespace: e.namespace, Nodes: true, DRA: true, Lease: "gpu-summary-controller", Events: true}.Needs()
	// The API server's authorizer hears of roles by a watch.
	lacks := func(want ...string) {
		e.Helper()
		e.eventually("the roles to take effect", func() error {
			report, err := preflight.Ask(e.Context(), client, needs)
			if err != nil {
				return err
			}
			var got []string
			for _, a := range report.Answers {
				if !a.Allowed {
					got = append(got, a.Resource+"/"+a.Verb)
				}
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("missing are %q, want %q", got, want)
			}
			return nil
		})
	}
	e.grant(all)
	lacks()
	if stdout, stderr, status := e.preflight(kubeconfig); status != 0 || stderr != "" || !strings.Contains(stdout, "user-of-"+e.namespace+" on "+config.Host+" has all ") {
		t.Errorf("with the manifests' rules: exit status %d\n%s%s", status, stdout, stderr)
	}
	for i, p := range all {
		e.grant(slices.Concat(all[:i], all[i+1:]))
		lacks(p.String())
		resource, verb := p.rule.Resources[0], p.rule.Verbs[0]
		if resource == "leases" {
			continue // outside a cluster no leader is elected
		}
		wantStatus, row := 1, "missing"
		if group := p.rule.APIGroups[0]; group == "resource.k8s.io" || group == "events.k8s.io" {
			wantStatus, row, resource = 0, "missing (optional)", resource+"."+group
		}
		stdout, stderr, status := e.preflight(kubeconfig)
		lines := strings.Split(stdout, "\n")
		if got, want := strings.Join(strings.Fields(lines[3]), " "), row+" "+verb+" "+resource+" "; !strings.HasPrefix(got, want) {
			t.Errorf("without %s the first row is %q, want %q", p, got, want)
		}
		if strings.Count(stdout, "\nmissing") != 1 || !strings.Contains(stdout, fmt.Sprintf("\n  resources: [%q]\n  verbs: [%q]\n", p.rule.Resources[0], verb)) {
			t.Errorf("without %s the table is\n%s", p, stdout)
		}
		if status != wantStatus || (status == 1) != strings.Contains(stderr, "required permissions that are missing: 1") {
			t.Errorf("without %s: exit status %d, want %d; %s", p, status, wantStatus, stderr)
		}
	}
}

// TestPreflightAsAnUnprivilegedServiceAccount lists exactly what the manifests would
// grant; what it prints for kubectl grants that and nothing else.
func TestPreflightAsAnUnprivilegedServiceAccount(t *testing.T) {
	e := newEnv(t)
	want := []string{"events/create"} // about nodes, in the namespace default
	for _, p := range e.permissions() {
		if p.rule.Resources[0] != "leases" { // outside a cluster no leader is elected
			want = append(want, p.String())
		}
	}
	kubeconfig := e.serviceAccount("unprivileged")
	stdout, stderr, status := e.preflight(kubeconfig, "-o", "json")
	var report struct {
		User        string
		Permissions []struct {
			Verb, Resource string
			Allowed        bool
		}
	}
	e.must(json.Unmarshal([]byte(stdout), &report))
	var got []string
	for _, p := range report.Permissions {
		if !p.Allowed {
			got = append(got, p.Resource+"/"+p.Verb)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || status != 1 || report.User != "system:serviceaccount:"+e.namespace+":unprivileged" {
		t.Errorf("exit status %d for %s, %s(-manifests +missing):\n%s", status, report.User, stderr, diff)
	}

	rules, _, _ := e.preflight(kubeconfig, "-o", "yaml")
	e.must(kube.Apply(t.Context(), e.plane.Config(), []byte(rules)))
	e.Cleanup(func() { e.removeCluster(rules) })
	e.eventually("the rules to take effect", func() error {
		stdout, _, status := e.preflight(kubeconfig)
		if status != 0 || strings.Contains(stdout, "missing") {
			return fmt.Errorf("exit status %d\n%s", status, stdout)
		}
		return nil
	})
	// Somebody who may impersonate it gets the same answer without its credentials.
	stdout, _, status = e.preflight(e.kubeconfig(e.plane.Config()), "--as", report.User)
	if status != 0 || !strings.HasPrefix(stdout, report.User+" ") {
		t.Errorf("as the service account: exit status %d\n%s", status, stdout)
	}
	stdout, _, status = e.preflight(kubeconfig, "--namespace", "default")
	if status != 1 || strings.Contains(stdout, "# to a ClusterRole") || !strings.Contains(stdout, "# to a Role in namespace default\n") {
		t.Errorf("for another namespace: exit status %d\n%s", status, stdout)
	}
}

// serviceAccount makes one and returns the kubeconfig to be it.
func (e *env) serviceAccount(name string) (kubeconfig string) {
	e.Helper()
	accounts := e.client.CoreV1().ServiceAccounts(e.namespace)
	_, err := accounts.Create(e.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	e.must(err)
	token, err := accounts.CreateToken(e.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	e.must(err)
	config := e.plane.Config()
	path := filepath.Join(e.TempDir(), "kubeconfig")
	e.must(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"lab": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"account": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"lab": {Cluster: "lab", AuthInfo: "account", Namespace: e.namespace}},
		CurrentContext: "lab",
	}, path))
	return path
}

// removeCluster removes what is not in the namespace of the test, and would stay.
func (e *env) removeCluster(manifest string) {
	ctx := context.Background() // the test has ended
	for doc := range strings.SplitSeq(manifest, "---\n") {
		var object metav1.PartialObjectMetadata
		e.must(yaml.Unmarshal([]byte(doc), &object))
		rbac := e.client.RbacV1()
		switch object.Kind {
		case "ClusterRole":
			e.must(rbac.ClusterRoles().Delete(ctx, object.Name, metav1.DeleteOptions{}))
		case "ClusterRoleBinding":
			e.must(rbac.ClusterRoleBindings().Delete(ctx, object.Name, metav1.DeleteOptions{}))
		case "Role":
			e.must(rbac.Roles(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{}))
		case "RoleBinding":
			e.must(rbac.RoleBindings(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{}))
		}
	}
}

// TestAFailedStartNamesAllThatIsMissing, not only what it failed of.
func TestAFailedStartNamesAllThatIsMissing(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(t)
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, "--kubeconfig", e.user(nil, nil), "--cache-sync-timeout=2s", "--http-address=127.0.0.1:0")
	cmd.Stderr = &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v, want exit status 1", err)
	}
	last := stderr.String()[strings.LastIndex(stderr.String(), "gpu-summary-controller: ")+1:]
	for _, p := range e.permissions() {
		if resource := p.rule.Resources[0]; resource != "leases" && !strings.Contains(last, fmt.Sprintf("grant the verb %q on %s", p.rule.Verbs[0], resource)) {
			t.Errorf("the message does not name %s:\n%s", p, last)
		}
	}
}
