package preflight

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviewer answers with a function, and counts questions under way.
type reviewer struct {
	authorizationv1client.SelfSubjectAccessReviewInterface // nil; only Create is used
	answer                                                 func(context.Context, authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error)

	mu         sync.Mutex
	busy, most int
	asked      []authorizationv1.ResourceAttributes
}

func (r *reviewer) Create(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error) {
	r.mu.Lock()
	r.busy++
	r.most = max(r.most, r.busy)
	r.asked = append(r.asked, *review.Spec.ResourceAttributes)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.busy--
		r.mu.Unlock()
	}()
	status, err := r.answer(ctx, *review.Spec.ResourceAttributes)
	return &authorizationv1.SelfSubjectAccessReview{Status: status}, err
}

// allExcept allows everything but a verb on a resource.
func allExcept(verb, resource string) *reviewer {
	return &reviewer{answer: func(_ context.Context, a authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: a.Verb != verb || a.Resource != resource}, nil
	}}
}

// TestEachVerbIsAsked, as the request would be: with group, namespace and name.
func TestEachVerbIsAsked(t *testing.T) {
	r := allExcept("update", "leases")
	report, err := Check(t.Context(), r, everything.Needs())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.asked) != len(report.Answers) {
		t.Errorf("%d questions, %d answers", len(r.asked), len(report.Answers))
	}
	want := authorizationv1.ResourceAttributes{
		Group: "coordination.k8s.io", Resource: "leases", Namespace: "gpu-summary", Name: "gpu-summary-controller", Verb: "update",
	}
	found := false
	for _, a := range r.asked {
		found = found || a == want
	}
	if !found {
		t.Errorf("not asked for: %+v", want)
	}
	for _, a := range report.Answers {
		if lacks := a.Verb == "update" && a.Resource == "leases"; a.Allowed == lacks {
			t.Errorf("%s %s: allowed is %t", a.Verb, a.object(), a.Allowed)
		}
	}
	if required, optional := report.Missing(); required != 1 || optional != 0 {
		t.Errorf("missing are %d and %d optional, want 1 and 0", required, optional)
	}
}

// TestQuestionsAreFewAtATime: a client's rate limit, and the server's, are for others
// as well.
func TestQuestionsAreFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{answer: func(context.Context, authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
			time.Sleep(time.Millisecond)
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
		}}
		if _, err := Check(t.Context(), r, everything.Needs()); err != nil {
			t.Fatal(err)
		}
		if r.most != atOnce {
			t.Errorf("%d questions at once, want %d", r.most, atOnce)
		}
	})
}

// silent accepts questions and never answers.
func silent() *reviewer {
	return &reviewer{answer: func(ctx context.Context, _ authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
		<-ctx.Done()
		return authorizationv1.SubjectAccessReviewStatus{}, ctx.Err()
	}}
}

// TestASilentServerIsGivenUp after a while that is bounded, and that is said.
func TestASilentServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, err := Check(t.Context(), silent(), everything.Needs())
		if err == nil || !strings.Contains(err.Error(), "cannot be reached") || !strings.Contains(err.Error(), "no answer within 10s") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(begin); took != patience {
			t.Errorf("it took %v, want %v", took, patience)
		}
	})
}

// TestBeingStoppedIsNoNewsOfTheServer: the error says why it was stopped.
func TestBeingStoppedIsNoNewsOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("no longer wanted")
		go func() {
			time.Sleep(time.Second)
			cancel(stop)
		}()
		_, err := Check(ctx, silent(), everything.Needs())
		if !errors.Is(err, stop) || strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("error %v, want %v", err, stop)
		}
	})
}

// TestAServerThatDoesNotAnswerIsAnError, never a permission that is missing.
func TestAServerThatDoesNotAnswerIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		status int // of every response, 0 for none
		want   string
	}{
		"unreachable":  {0, "the API server cannot be reached"},
		"unauthorized": {http.StatusUnauthorized, "the API server does not know us"},
		"forbidden":    {http.StatusForbidden, "the API server does not let us ask"},
		"broken":       {http.StatusInternalServerError, "ask the API server for our permissions: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tc.status) }))
			defer server.Close()
			if tc.status == 0 {
				server.Close()
			}
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Ask(t.Context(), client, everything.Needs())
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if advice := Advise(t.Context(), client, everything.Needs()); !strings.HasPrefix(advice, tc.want) {
				t.Errorf("advice %q, want %q", advice, tc.want)
			}
		})
	}
}
