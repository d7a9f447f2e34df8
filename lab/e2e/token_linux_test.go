package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// TestTokenRotation: the cluster gets another key for tokens, the kubelet puts new ones
// into the running containers, the replicas take them up without a restart, and then the
// old ones are worth nothing. (A kubelet asks for a new token when four fifths of 3607
// seconds are over. This one is restarted, and knows no old ones then.)
func TestTokenRotation(t *testing.T) {
	e := newEnv(t)
	e.running(holder("a", 1))
	e.settled(1)
	old := e.tokens()
	newKey, withdraw := e.newTokenKey()
	newKey()
	e.eventually("two replicas", func() error { return e.site.working(t.Context(), 2) })
	restarts := e.restarts()
	answered := len(e.requests(e.site, anyRequest))
	e.must(e.node.Kubelet().Restart(t.Context()))
	e.eventually("the kubelet to mount new tokens", func() error {
		now, err := e.readTokens()
		for pod, token := range old {
			if err == nil && now[pod] == token {
				err = fmt.Errorf("%s still has the old one", pod)
			}
		}
		return err
	})
	ids := map[string]string{}
	for _, r := range e.requests(e.site, anyRequest)[:answered] {
		ids[strings.Join(r.User.Extra[extraPod], "")] = strings.Join(r.User.Extra[extraCredential], "")
	}
	e.eventually("replicas to use the new tokens", func() error {
		used := map[string]bool{}
		for _, r := range e.requests(e.site, anyRequest)[answered:] {
			pod, id := strings.Join(r.User.Extra[extraPod], ""), strings.Join(r.User.Extra[extraCredential], "")
			used[pod] = used[pod] || id != ids[pod]
		}
		for pod := range old {
			if !used[pod] {
				return fmt.Errorf("%s has not yet", pod)
			}
		}
		return nil
	})
	if now := e.restarts(); fmt.Sprint(now) != fmt.Sprint(restarts) {
		t.Errorf("containers were restarted for it: %v before, %v now", restarts, now)
	}
	withdraw()
	for pod, token := range old {
		if err := e.authenticates(token); err == nil {
			t.Errorf("the old token of %s still works", pod)
		}
	}
	e.eventually("two replicas", func() error { return e.site.working(t.Context(), 2) })
	e.running(holder("b", 2))
	e.settled(3)
}

func anyRequest(*auditv1.Event) bool { return true }

// tokens are what the replicas' containers have mounted.
func (e *env) tokens() map[string]string {
	e.Helper()
	tokens, err := e.readTokens()
	e.must(err)
	if len(tokens) != 2 {
		e.Fatalf("%d replicas have tokens, want 2", len(tokens))
	}
	return tokens
}

// readTokens reads them where the kubelet has mounted them, which only the node sees.
func (e *env) readTokens() (map[string]string, error) {
	tokens := map[string]string{}
	root := fmt.Sprintf("/proc/%d/root", e.node.Containerd().Pid())
	for _, p := range e.site.pods(e.Context()) {
		found, err := filepath.Glob(filepath.Join(root, "var", "lib", "kubelet", "pods", string(p.UID), "volumes", "kubernetes.io~projected", "kube-api-access-*", "token"))
		if err != nil {
			return nil, err
		}
		if len(found) != 1 {
			return nil, fmt.Errorf("%s has %d tokens", p.Name, len(found))
		}
		text, err := os.ReadFile(found[0])
		if err != nil {
			return nil, err
		}
		tokens[p.Name] = string(text)
	}
	return tokens, nil
}

// restarts are how often each replica's container was.
func (e *env) restarts() map[string]int32 {
	e.Helper()
	counts := map[string]int32{}
	for _, p := range e.site.pods(e.Context()) {
		counts[p.Name] = p.Status.ContainerStatuses[0].RestartCount
	}
	return counts
}

// newTokenKey prepares another key. The first function lets the API server sign with it
// and accept both, the second lets it accept the new one alone.
func (e *env) newTokenKey() (add, withdraw func()) {
	e.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	e.must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	e.must(err)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	e.must(err)
	dir := filepath.Join(lab.plane.Dir(), "certs")
	old, err := os.ReadFile(filepath.Join(dir, "sa.pub"))
	e.must(err)
	now := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	use := func(accepted []byte) {
		e.Helper()
		e.must(errors.Join(
			os.WriteFile(filepath.Join(dir, "sa.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
			os.WriteFile(filepath.Join(dir, "sa.pub"), accepted, 0o600),
		))
		// The controller manager has tokens of its own.
		for _, name := range []string{plane.APIServer, plane.ControllerManager} {
			e.must(lab.plane.Component(name).Restart(e.Context()))
		}
	}
	return func() { use(append(now, old...)) }, func() { use(now) }
}

// authenticates asks the API server whom it takes a token for.
func (e *env) authenticates(token string) error {
	config := rest.AnonymousClientConfig(lab.plane.Config())
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	status := 0
	err = client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/"+e.site.namespace+"/configmaps").
		VersionedParams(&metav1.ListOptions{Limit: 1}, metav1.ParameterCodec).Do(e.Context()).StatusCode(&status).Error()
	if err != nil && status != http.StatusUnauthorized {
		e.Errorf("the old token is answered with %d: %v", status, err)
	}
	return err
}
