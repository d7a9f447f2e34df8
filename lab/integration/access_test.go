package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/gpu-summary/gpu-summary-controller/internal/preflight"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
)

// guarded is a server that asks the lab's API server who may read.
type guarded struct {
	*env
	url    string
	client *http.Client
	log    *lines
}

// guard serves until the test ends. Answers are remembered for a short time, so that
// tests need not wait for long.
func (e *env) guard(config *rest.Config, audiences ...string) *guarded {
	e.Helper()
	client, err := kubernetes.NewForConfig(config)
	e.must(err)
	certificate, err := serve.SelfMadeCertificate()
	e.must(err)
	server, err := serve.Listen(serve.Options{
		Address: "127.0.0.1:0", Profiling: true, TLS: certificate,
		Ready: func() map[string]error { return map[string]error{"pods": fmt.Errorf("secret")} },
		Auth: serve.NewReviews(serve.ReviewOptions{
			Tokens: client.AuthenticationV1().TokenReviews(), Access: client.AuthorizationV1().SubjectAccessReviews(),
			Audiences: audiences, AllowedFor: time.Second, RefusedFor: 100 * time.Millisecond,
		}),
	})
	e.must(err)
	g := &guarded{env: e, url: server.URL(), log: &lines{}, client: &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true},
	}}
	// The most that can be logged, to see that no token is.
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(g.log), textlogger.Verbosity(10)))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	e.Cleanup(func() {
		g.client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			e.Errorf("the server ended with %v", err)
		}
	})
	return g
}

// get asks for a path with a token, or with none. Each token and path is a stranger
// once, and there are many of them here.
func (g *guarded) get(path, token string) (status int, body string) {
	g.Helper()
	g.eventually("room for a stranger", func() error {
		if status, body = g.try(path, token); status == http.StatusTooManyRequests {
			return fmt.Errorf("it is %d", status)
		}
		return nil
	})
	return status, body
}

func (g *guarded) try(path, token string) (int, string) {
	g.Helper()
	req, err := http.NewRequestWithContext(g.Context(), http.MethodGet, g.url+path, nil)
	g.must(err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := g.client.Do(req)
	g.must(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	g.must(err)
	if res.StatusCode >= 400 && res.StatusCode != http.StatusNotFound && path != "/readyz" && string(body) != http.StatusText(res.StatusCode)+"\n" {
		g.Errorf("GET %s: %d says %q", path, res.StatusCode, body)
	}
	return res.StatusCode, string(body)
}

// becomes waits until /metrics has a status: the API server hears of roles by a watch,
// and remembers answers for a while, as we do.
func (g *guarded) becomes(want int, token string) {
	g.Helper()
	g.eventually(fmt.Sprintf("%d for /metrics", want), func() error {
		if got, _ := g.get("/metrics", token); got != want {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
}

// reader makes a service account and a token for it.
func (e *env) reader(name string, audiences ...string) (token string) {
	e.Helper()
	accounts := e.client.CoreV1().ServiceAccounts(e.namespace)
	_, err := accounts.Create(e.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	e.must(err)
	return e.token(name, audiences...)
}

func (e *env) token(name string, audiences ...string) string {
	e.Helper()
	request, err := e.client.CoreV1().ServiceAccounts(e.namespace).CreateToken(e.Context(), name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences},
	}, metav1.CreateOptions{})
	e.must(err)
	return request.Status.Token
}

// mayGet lets service accounts get paths, until the function that it returns is
// called, or the test ends.
func (e *env) mayGet(paths []string, names ...string) (revoke func()) {
	e.Helper()
	rbac := e.client.RbacV1()
	meta := metav1.ObjectMeta{Name: "readers-of-" + e.namespace}
	var subjects []rbacv1.Subject
	for _, name := range names {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: e.namespace, Name: name})
	}
	_, err := rbac.ClusterRoles().Create(e.Context(), &rbacv1.ClusterRole{
		ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	e.must(err)
	_, err = rbac.ClusterRoleBindings().Create(e.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{})
	e.must(err)
	bound := true
	revoke = func() {
		if bound {
			bound = false
			e.must(rbac.ClusterRoleBindings().Delete(context.Background(), meta.Name, metav1.DeleteOptions{}))
		}
	}
	e.Cleanup(func() {
		revoke()
		e.must(rbac.ClusterRoles().Delete(context.Background(), meta.Name, metav1.DeleteOptions{}))
	})
	return revoke
}

// TestAccess: an unauthenticated request gets 401 and an unauthorised one 403, both
// without detail; one with the right gets what it asked for, and nothing beside it.
func TestAccess(t *testing.T) {
	e := newEnv(t)
	g := e.guard(e.plane.Config())
	scraper, nobody := e.reader("scraper"), e.reader("nobody")
	// Of the API server itself every account may get the last four.
	for _, path := range []string{"/metrics", "/debug/pprof/cmdline", "/", "/nowhere", "/api", "/api/nodes", "/version", "/openapi/v3"} {
		for token, want := range map[string]int{"": 401, "nonsense": 401, scraper + "x": 401, scraper: 403, nobody: 403} {
			if got, _ := g.get(path, token); got != want {
				t.Errorf("%s: %d, want %d", path, got, want)
			}
		}
	}
	revoke := e.mayGet([]string{"/metrics", "/gpu-summary/*"}, "scraper")
	g.becomes(200, scraper)
	if _, body := g.get("/metrics", scraper); !strings.Contains(body, "\ngo_goroutines ") {
		t.Errorf("/metrics is\n%s", body)
	}
	for _, other := range []struct {
		path, token string
		want        int
	}{
		{"/metrics", nobody, 403}, {"/api/nodes", nobody, 403}, {"/debug/pprof/cmdline", scraper, 403},
		{"/", scraper, 404}, {"/api/nodes", scraper, 404}, // nobody has put anything there
	} {
		if got, _ := g.get(other.path, other.token); got != other.want {
			t.Errorf("%s: %d, want %d", other.path, got, other.want)
		}
	}
	for token, want := range map[string]string{"": "reason withheld", nobody: "reason withheld", scraper: "secret"} {
		e.eventually("reasons for those who may know them", func() error {
			if got, body := g.get("/readyz", token); got != 503 || body != "[-] pods: "+want+"\nnot ready\n" {
				return fmt.Errorf("/readyz: %d %q", got, body)
			}
			return nil
		})
	}
	revoke()
	g.becomes(403, scraper)
	for _, token := range []string{scraper, nobody} {
		if strings.Contains(g.log.String(), token) {
			t.Error("a token is in the log")
		}
	}
	if !strings.Contains(g.log.String(), `user="system:serviceaccount:`+e.namespace+`:nobody" path="/metrics"`) {
		t.Errorf("the log does not say who was refused:\n%s", g.log.String())
	}
}

// TestADeletedReaderIsNobody, and an account of the same name is somebody else.
func TestADeletedReaderIsNobody(t *testing.T) {
	e := newEnv(t)
	g := e.guard(e.plane.Config())
	before := e.reader("scraper")
	e.mayGet([]string{"/metrics"}, "scraper")
	g.becomes(200, before)
	e.must(e.client.CoreV1().ServiceAccounts(e.namespace).Delete(t.Context(), "scraper", metav1.DeleteOptions{}))
	g.becomes(401, before)
	after := e.reader("scraper")
	g.becomes(200, after)
	if got, _ := g.get("/metrics", before); got != 401 {
		t.Errorf("a token of the account that is gone: %d", got)
	}
}

// TestATokenForUs is of no use to the API server, nor one for the API server to us.
func TestATokenForUs(t *testing.T) {
	e := newEnv(t)
	g := e.guard(e.plane.Config(), "gpu-summary")
	ours := e.reader("scraper", "gpu-summary")
	theirs := e.token("scraper")
	e.mayGet([]string{"/metrics"}, "scraper")
	g.becomes(200, ours)
	if got, _ := g.get("/metrics", theirs); got != 401 {
		t.Errorf("a token for the API server: %d", got)
	}
	if got, _ := e.guard(e.plane.Config()).get("/metrics", ours); got != 401 {
		t.Errorf("our token where the API server's audience is wanted: %d", got)
	}
}

// TestTheRightToAsk is two rules, those that preflight knows. Without either of them
// readers get 503 and the log says what is missing.
func TestTheRightToAsk(t *testing.T) {
	e := newEnv(t)
	var rules []rbacv1.PolicyRule
	needs := func(o preflight.Options) []preflight.Need { o.Namespace = e.namespace; return o.Needs() }
	without := needs(preflight.Options{})
	for _, need := range needs(preflight.Options{Authentication: true}) {
		if !slices.ContainsFunc(without, func(n preflight.Need) bool { return n.Group == need.Group && n.Resource == need.Resource }) {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{need.Group}, Resources: []string{need.Resource}, Verbs: need.Verbs})
		}
	}
	if len(rules) != 2 {
		t.Fatalf("%d rules: %+v", len(rules), rules)
	}
	e.user(nil, nil)
	config, err := e.plane.ConfigFor("user-of-" + e.namespace)
	e.must(err)
	grant := func(rules ...rbacv1.PolicyRule) {
		_, err := e.client.RbacV1().ClusterRoles().Update(t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "user-of-" + e.namespace}, Rules: rules,
		}, metav1.UpdateOptions{})
		e.must(err)
	}
	token := e.reader("scraper")
	e.mayGet([]string{"/metrics"}, "scraper")
	for _, rule := range rules {
		g := e.guard(config)
		missing := rule.Resources[0]
		grant(slices.DeleteFunc(slices.Clone(rules), func(r rbacv1.PolicyRule) bool { return r.Resources[0] == missing })...)
		said := fmt.Sprintf("cannot create resource %q", missing)
		e.eventually("the log to say "+said, func() error {
			if got, _ := g.get("/metrics", token); got == 200 {
				t.Errorf("without %s: 200", missing)
			}
			if text := strings.ReplaceAll(g.log.String(), `\"`, `"`); !strings.Contains(text, said) {
				return fmt.Errorf("it says\n%s", text)
			}
			return nil
		})
		if got, _ := g.get("/metrics", token); got != 503 {
			t.Errorf("without %s: %d", missing, got)
		}
		grant(rules...)
		g.becomes(200, token)
		if n := bytes.Count([]byte(g.log.String()), []byte("refused with 503")); n != 1 {
			t.Errorf("it is logged %d times", n)
		}
	}
}
