package serve

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// reviewer plays the API server. The token "good" is known, and may read.
type reviewer struct {
	mu        sync.Mutex
	asked     []string
	last      authorizationv1.SubjectAccessReviewSpec
	audiences []string

	identify  func(context.Context, *authenticationv1.TokenReviewStatus) error
	authorize func(context.Context, *authorizationv1.SubjectAccessReviewStatus) error
}

var user = authenticationv1.UserInfo{
	Username: "reader", UID: "1", Groups: []string{"a", "b"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v", "w"}},
}

type tokens struct{ *reviewer }

func (r tokens) Create(ctx context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	r.mu.Lock()
	r.asked = append(r.asked, review.Spec.Token)
	r.audiences = review.Spec.Audiences
	r.mu.Unlock()
	status := authenticationv1.TokenReviewStatus{Authenticated: review.Spec.Token == "good", User: user}
	var err error
	if r.identify != nil {
		err = r.identify(ctx, &status)
	}
	return &authenticationv1.TokenReview{Status: status}, err
}

type access struct{ *reviewer }

func (r access) Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.mu.Lock()
	r.last = review.Spec
	r.mu.Unlock()
	status := authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	var err error
	if r.authorize != nil {
		err = r.authorize(ctx, &status)
	}
	return &authorizationv1.SubjectAccessReview{Status: status}, err
}

func (r *reviewer) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

func (r *reviewer) reviews(audiences ...string) *Reviews {
	return NewReviews(ReviewOptions{Tokens: tokens{r}, Access: access{r}, Audiences: audiences})
}

// refusing knows the reader, who may not read.
func refusing() *reviewer {
	return &reviewer{authorize: func(_ context.Context, s *authorizationv1.SubjectAccessReviewStatus) error {
		s.Allowed = false
		return nil
	}}
}

// quiet is a context whose log fails no test.
func quiet() context.Context { return klog.NewContext(context.Background(), klog.Logger{}) }

// logged is a context with a log that can be looked at.
func logged(t *testing.T, verbosity int) (context.Context, func() string) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(verbosity)))
	return klog.NewContext(t.Context(), logger), func() string {
		return logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	}
}

func says(n int, what string, text string, t *testing.T) {
	t.Helper()
	if got := strings.Count(text, what); got != n {
		t.Errorf("%q is logged %d times, want %d:\n%s", what, got, n, text)
	}
}

// TestWhoGetsIn is who is known and allowed. All else fails closed.
func TestWhoGetsIn(t *testing.T) {
	type who = authenticationv1.TokenReviewStatus
	type may = authorizationv1.SubjectAccessReviewStatus
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		token     string
		audiences []string
		who       func(*who) error
		may       func(*may) error
		want      Verdict
	}{
		"good":                     {"good", nil, nil, nil, Allowed},
		"unknown token":            {"bad", nil, nil, nil, Unauthenticated},
		"not authenticated":        {"good", nil, func(s *who) error { s.Authenticated = false; return nil }, nil, Unauthenticated},
		"not allowed":              {"good", nil, nil, func(s *may) error { s.Allowed = false; return nil }, Forbidden},
		"no opinion but an error":  {"good", nil, nil, func(s *may) error { s.Allowed, s.EvaluationError = false, "x"; return nil }, Forbidden},
		"allowed and denied":       {"good", nil, nil, func(s *may) error { s.Denied = true; return nil }, Forbidden},
		"token review fails":       {"good", nil, func(*who) error { return broken }, nil, Unknown},
		"access review fails":      {"good", nil, nil, func(*may) error { return broken }, Unknown},
		"our audience":             {"good", []string{"us", "we"}, func(s *who) error { s.Audiences = []string{"x", "we"}; return nil }, nil, Allowed},
		"another audience":         {"good", []string{"us"}, func(s *who) error { s.Audiences = []string{"x"}; return nil }, nil, Unauthenticated},
		"audiences not looked at":  {"good", []string{"us"}, nil, nil, Unauthenticated},
		"any audience of a server": {"good", nil, func(s *who) error { s.Audiences = []string{"api"}; return nil }, nil, Allowed},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reviewer{
				identify: func(_ context.Context, s *who) error {
					if tc.who == nil {
						return nil
					}
					return tc.who(s)
				},
				authorize: func(_ context.Context, s *may) error {
					if tc.may == nil {
						return nil
					}
					return tc.may(s)
				},
			}
			reviews := r.reviews(tc.audiences...)
			for range 2 { // asked, and remembered
				if got := reviews.Decide(quiet(), tc.token, "/metrics"); got != tc.want {
					t.Errorf("%d, want %d", got, tc.want)
				}
			}
			if diff := cmp.Diff(tc.audiences, r.audiences); diff != "" {
				t.Errorf("audiences: %s", diff)
			}
		})
	}
}

// TestTheWholeUserIsAskedAbout: a right may depend on any part of them.
func TestTheWholeUserIsAskedAbout(t *testing.T) {
	r := &reviewer{}
	r.reviews().Decide(quiet(), "good", "/api/nodes")
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "reader", UID: "1", Groups: []string{"a", "b"}, Extra: map[string]authorizationv1.ExtraValue{"k": {"v", "w"}},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/api/nodes", Verb: "get"},
	}
	if diff := cmp.Diff(want, r.last); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAnswersAreRemembered for as long as is said, and no longer. That there was none
// is not.
func TestAnswersAreRemembered(t *testing.T) {
	for name, tc := range map[string]struct {
		token string
		err   error
		good  time.Duration
	}{
		"allowed": {"good", nil, time.Minute},
		"refused": {"bad", nil, 10 * time.Second},
		"failed":  {"good", errors.New("broken"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &reviewer{identify: func(context.Context, *authenticationv1.TokenReviewStatus) error { return tc.err }}
				reviews := r.reviews()
				reviews.Decide(quiet(), tc.token, "/metrics")
				if tc.good > 0 {
					time.Sleep(tc.good - 1)
					reviews.Decide(quiet(), tc.token, "/metrics")
					if n := r.count(); n != 1 {
						t.Errorf("asked %d times", n)
					}
					time.Sleep(time.Nanosecond)
				}
				reviews.Decide(quiet(), tc.token, "/metrics")
				if n := r.count(); n != 2 {
					t.Errorf("asked %d times after %v", n, tc.good)
				}
				reviews.Decide(quiet(), tc.token, "/other")
				if n := r.count(); n != 3 {
					t.Error("the answer for one path was taken for another's")
				}
			})
		})
	}
}

// TestARightThatIsTakenAwayEnds within the minute, counted from the question, however
// slow the answer was; and so does one that nobody can confirm.
func TestARightThatIsTakenAwayEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allowed, broken := true, false
		r := &reviewer{authorize: func(_ context.Context, s *authorizationv1.SubjectAccessReviewStatus) error {
			s.Allowed = allowed // as the server sees it when it begins
			time.Sleep(time.Second)
			if broken {
				return errors.New("broken")
			}
			return nil
		}}
		reviews := r.reviews()
		decide := func(want Verdict) {
			t.Helper()
			if got := reviews.Decide(quiet(), "good", "/metrics"); got != want {
				t.Errorf("%d, want %d", got, want)
			}
		}
		decide(Allowed)
		allowed = false
		time.Sleep(time.Minute - time.Second)
		decide(Forbidden)
		allowed = true
		time.Sleep(10 * time.Second)
		decide(Allowed)
		broken = true
		time.Sleep(time.Minute - time.Second - 1)
		decide(Allowed)
		time.Sleep(time.Nanosecond)
		decide(Unknown)
	})
}
