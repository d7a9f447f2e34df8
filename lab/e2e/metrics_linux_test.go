package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// metrics reads what a replica serves, as a scraper with the chart's role.
func (e *env) metrics(replica *corev1.Pod) string {
	e.Helper()
	token := e.scraper("reader-of-"+replica.Name, true)
	client := &http.Client{Transport: &http.Transport{
		DialContext: e.node.Dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	var text []byte
	e.eventually("metrics of "+replica.Name, func() error {
		request, err := http.NewRequestWithContext(e.Context(), http.MethodGet, "https://"+net.JoinHostPort(replica.Status.PodIP, "8443")+"/metrics", nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		text, err = io.ReadAll(response.Body)
		return err
	})
	return string(text)
}

// scraper makes a service account in the test's namespace, with the chart's role or
// without, and returns a token.
func (e *env) scraper(name string, may bool) string {
	e.Helper()
	accounts := e.client.CoreV1().ServiceAccounts(e.namespace)
	_, err := accounts.Create(e.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	e.must(err)
	if may {
		binding := e.namespace + "-" + name
		_, err := kubectl(e.Context(), "create", "clusterrolebinding", binding,
			"--clusterrole="+e.site.controller()+"-metrics-reader", "--serviceaccount="+e.namespace+":"+name)
		e.must(err)
		e.Cleanup(func() {
			e.must(e.client.RbacV1().ClusterRoleBindings().Delete(context.Background(), binding, metav1.DeleteOptions{}))
		})
	}
	token, err := accounts.CreateToken(e.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	e.must(err)
	return token.Status.Token
}

// alerts lets promtool evaluate the expression of an alert of deploy/prometheus over the
// metrics of all replicas, with what is for there, and compares the one series that must
// come out.
func (e *env) alerts(name, labels string, value float64) {
	e.Helper()
	promtool := e.promtool()
	if promtool == "" {
		e.Errorf("the expression of %s could not be evaluated: no promtool; `make %s` builds it", name, "bin/tools/promtool")
		return
	}
	expression := e.alert(name)
	type series struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	var input []series
	leader, err := e.site.leader(e.Context())
	e.must(err)
	lines := bufio.NewScanner(strings.NewReader(e.metrics(leader)))
	for lines.Scan() {
		key, n, ok := strings.Cut(lines.Text(), "} ")
		if ok && strings.HasPrefix(key, "gpu_summary_") {
			input = append(input, series{key + "}", n + "x60"})
		}
	}
	test := map[string]any{
		"evaluation_interval": "1m",
		"tests": []any{map[string]any{
			"interval": "1m", "input_series": input,
			"promql_expr_test": []any{map[string]any{
				"expr": expression, "eval_time": "30m",
				"exp_samples": []any{map[string]any{"labels": labels, "value": value}},
			}},
		}},
	}
	text, err := json.Marshal(test)
	e.must(err)
	file := filepath.Join(e.TempDir(), "test.yaml")
	e.must(os.WriteFile(file, text, 0o600))
	if out, err := exec.CommandContext(e.Context(), promtool, "test", "rules", file).CombinedOutput(); err != nil {
		e.Errorf("%s: %v\n%s", name, err, out)
	}
}

// alert is the expression of an alert.
func (e *env) alert(name string) string {
	e.Helper()
	text, err := os.ReadFile(filepath.Join(lab.tools.Root, "deploy", "prometheus", "rules.yaml"))
	e.must(err)
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	e.must(yaml.Unmarshal(text, &file))
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == name {
				return rule.Expr
			}
		}
	}
	e.Fatalf("there is no alert %s", name)
	return ""
}

// promtool is $PROMTOOL, or what make has built for the rules; "" if there is none.
func (e *env) promtool() string {
	e.Helper()
	if path := os.Getenv("PROMTOOL"); path != "" {
		return path
	}
	found, err := filepath.Glob(filepath.Join(lab.tools.Root, "bin", "tools", "promtool-*"))
	e.must(err)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// sample is the sum of a metric's series with these labels, as they are written.
func sample(metrics, name string, labels ...string) (sum float64, err error) {
	for line := range strings.Lines(metrics) {
		series, n, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || (series != name && !strings.HasPrefix(series, name+"{")) {
			continue
		}
		matches := true
		for _, label := range labels {
			matches = matches && strings.Contains(series, label)
		}
		if !matches {
			continue
		}
		value, err := strconv.ParseFloat(n, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", line, err)
		}
		sum += value
	}
	return sum, nil
}
