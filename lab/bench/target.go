package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench/server"
)

const (
	namespace   = "bench"
	summaryName = "gpu-summary"

	startTimeout   = 20 * time.Second
	controlTimeout = 10 * time.Second
)

// target is a server process that a contestant runs against.
type target struct {
	*process
	url        string
	control    string
	kubeconfig string
	client     http.Client
}

// mode is how a server serves.
type mode struct {
	tls, gzip, jsonOnly, noWatchList bool
}

func (m mode) String() string {
	var words []string
	for _, w := range []struct {
		on   bool
		word string
	}{{m.tls, "TLS"}, {m.gzip, "gzip"}, {m.jsonOnly, "JSON only"}, {m.noWatchList, "no watch list"}} {
		if w.on {
			words = append(words, w.word)
		}
	}
	if words == nil {
		return "plain"
	}
	return strings.Join(words, ", ")
}

// serve starts a server of that size.
func (r *runner) serve(ctx context.Context, size server.Size, m mode) (*target, error) {
	args := slices.Concat(r.Self[1:], []string{
		"server", "--nodes", strconv.Itoa(size.Nodes), "--pods", strconv.Itoa(size.Pods),
		"--gpu-pods", strconv.Itoa(size.GPUPods), "--gpu-nodes", strconv.Itoa(size.GPUNodes), "--summary", summaryName,
		fmt.Sprintf("--tls=%t", m.tls), fmt.Sprintf("--gzip=%t", m.gzip), fmt.Sprintf("--json-only=%t", m.jsonOnly), fmt.Sprintf("--no-watchlist=%t", m.noWatchList),
	})
	p, err := r.launch(ctx, "server", r.Self[0], args...)
	if err != nil {
		return nil, err
	}
	t := &target{process: p}
	started, err := within(ctx, p, func() (s server.Started, err error) {
		return s, json.NewDecoder(p.stdout).Decode(&s)
	})
	if err == nil {
		t.url, t.control = started.URL, started.Control
		t.kubeconfig, err = r.writeKubeconfig(started)
	}
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("start server: %w", err)
	}
	return t, nil
}

// within waits for something that a process says.
func within[T any](ctx context.Context, p *process, read func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() { // ends with the process, if not before
		value, err := read()
		answers <- answer{value, err}
	}()
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	var none T
	select {
	case a := <-answers:
		if a.err != nil {
			return none, errors.Join(a.err, errors.New(p.stderr.String()))
		}
		return a.value, nil
	case <-p.ended:
		return none, p.lost()
	case <-timer.C:
		return none, fmt.Errorf("%s said nothing for %v", p.name, startTimeout)
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

func (r *runner) writeKubeconfig(s server.Started) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["bench"] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: []byte(s.CA)}
	config.AuthInfos["bench"] = &clientcmdapi.AuthInfo{Token: "anybody"}
	config.Contexts["bench"] = &clientcmdapi.Context{Cluster: "bench", AuthInfo: "bench", Namespace: namespace}
	config.CurrentContext = "bench"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("encode kubeconfig: %w", err)
	}
	r.files++
	path := filepath.Join(r.dir, fmt.Sprintf("kubeconfig-%d", r.files))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, nil
}

// harness is a client of the API that is not counted.
func (t *target) harness() *rest.Config { return &rest.Config{Host: t.control, QPS: -1} }

// ask sends a request to the harness's side of the server.
func (t *target) ask(ctx context.Context, timeout time.Duration, method, path string, body io.Reader, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the server did not answer %s within %v", path, timeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, t.control+path, body)
	if err != nil {
		return err
	}
	response, err := t.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("ask server: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("ask server: %s answered %s: %s", path, response.Status, text)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("ask server: read %s: %w", path, err)
	}
	return nil
}

// state returns what the server knows, with the writes from number from on.
func (t *target) state(ctx context.Context, from int) (server.State, error) {
	var s server.State
	return s, t.ask(ctx, controlTimeout, http.MethodGet, server.PathState+"?from="+strconv.Itoa(from), nil, &s)
}

// right waits until the published summary is right for the first time.
func (t *target) right(ctx context.Context, timeout time.Duration) (server.State, error) {
	var s server.State
	err := t.ask(ctx, timeout, http.MethodGet, server.PathRight, nil, &s)
	if err == nil {
		return s, nil
	}
	// What it says instead is what one wants to know.
	if now, stateErr := t.state(context.WithoutCancel(ctx), 0); stateErr == nil {
		err = fmt.Errorf("%w; the summary says %+v, right is %+v", err, now.Published, now.Expected)
	}
	return s, err
}

// churn lets the cluster change, and returns when it has.
func (t *target) churn(ctx context.Context, c server.Churn) ([]server.GPUEvent, error) {
	order, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	timeout := time.Minute
	if c.PerSecond > 0 {
		timeout += 2 * time.Duration(float64(c.Count)/c.PerSecond*float64(time.Second))
	}
	var events []server.GPUEvent
	return events, t.ask(ctx, timeout, http.MethodPost, server.PathChurn, strings.NewReader(string(order)), &events)
}
