package serve

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// TestTokensAreNotLogged, however much else is, by a real client.
func TestTokensAreNotLogged(t *testing.T) {
	const token = "do-not-print-me"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			_, _ = w.Write([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"` + token + `"},"status":{"authenticated":true,"user":{"username":"reader"}}}`))
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	defer klog.CaptureState().Restore()
	var log bytes.Buffer
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"v": "10", "logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	klog.SetOutput(&log)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	reviews := NewReviews(ReviewOptions{
		Tokens: client.AuthenticationV1().TokenReviews(), Access: client.AuthorizationV1().SubjectAccessReviews(),
	})
	if got := reviews.Decide(context.Background(), token, "/metrics"); got != Unknown {
		t.Errorf("verdict %d, want one of an API server that does not say", got)
	}
	klog.Flush()
	if !strings.Contains(log.String(), "ask who may read") {
		t.Fatalf("this test does not see the log:\n%s", log.String())
	}
	if strings.Contains(log.String(), token) {
		t.Errorf("the token is in the log:\n%s", log.String())
	}
}

// TestARefusedReaderIsInTheLog for those who look for them. The answer does not say
// who they were taken for, so that this is the only place.
func TestARefusedReaderIsInTheLog(t *testing.T) {
	for verbosity, want := range map[int]int{0: 0, 2: 1} {
		ctx, log := logged(t, verbosity)
		refusing().reviews().Decide(ctx, "good", "/metrics")
		says(want, `user="reader" path="/metrics"`, log(), t)
	}
}

// TestBrokenHandshakesAreQuiet: anybody can cause them. A panic is not.
func TestBrokenHandshakesAreQuiet(t *testing.T) {
	ctx, log := logged(t, 2)
	c := complaints{klog.FromContext(ctx)}
	for _, line := range []string{"http: TLS handshake error from 10.0.0.1:1: EOF\n", "http: panic serving 10.0.0.1:1: oh\n"} {
		if n, err := c.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	says(0, "handshake", log(), t)
	says(1, "panic serving", log(), t)
}
