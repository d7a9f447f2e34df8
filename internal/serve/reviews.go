package serve

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
)

const (
	// reviewTimeout is how long the API server may take for both of its answers.
	reviewTimeout = 5 * time.Second

	// Readers that were let in are few; those that were not can be any number. They
	// have memories of their own, so that strangers push out only each other.
	maxAllowed, maxRefused = 256, 1024

	// What strangers may make us ask. Somebody who was let in before is none.
	strangersPerSecond, strangersAtOnce = 5, 20
)

var errNoReview = fmt.Errorf("no answer within %v", reviewTimeout)

// TokenReviews is where the API server is asked whose token it is.
type TokenReviews interface {
	Create(context.Context, *authenticationv1.TokenReview, metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

// AccessReviews is where the API server is asked what somebody may do.
type AccessReviews interface {
	Create(context.Context, *authorizationv1.SubjectAccessReview, metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// ReviewOptions says whom to ask, and how long an answer is good for.
type ReviewOptions struct {
	Tokens TokenReviews
	Access AccessReviews
	// Audiences are those that a token must be for one of; none is that of the API
	// server. A token for another audience is of no use to whoever steals it from us.
	Audiences []string
	// AllowedFor is how long a right that was taken away, or a token that was, may go
	// on working. A minute unless set.
	AllowedFor time.Duration
	// RefusedFor is how long a right that was given may be refused. 10 seconds unless
	// set.
	RefusedFor time.Duration
}

// Reviews lets the API server decide: it says whose token it is, and whether they
// may get the path. Without its answer nobody gets in, and that is not remembered.
type Reviews struct {
	options ReviewOptions
	// secret makes what is remembered useless outside of this process. Tokens
	// themselves are kept no longer than the question takes.
	secret           [sha256.Size]byte
	allowed, refused *lru.Cache // digest of token and path → answer
	asking           singleflight.Group
	strangers        *rate.Limiter
	failing          atomic.Bool
}

// answer is a verdict and when it ends to be good.
type answer struct {
	verdict Verdict
	until   time.Time
}

// NewReviews makes an Auth of these options.
func NewReviews(o ReviewOptions) *Reviews {
	if o.AllowedFor == 0 {
		o.AllowedFor = time.Minute
	}
	if o.RefusedFor == 0 {
		o.RefusedFor = 10 * time.Second
	}
	r := &Reviews{
		options: o,
		allowed: lru.New(maxAllowed), refused: lru.New(maxRefused),
		strangers: rate.NewLimiter(strangersPerSecond, strangersAtOnce),
	}
	_, _ = rand.Read(r.secret[:]) // it never fails
	return r
}

// Decide asks, unless it has just done so. Equal questions at the same time are one.
func (r *Reviews) Decide(ctx context.Context, token, path string) Verdict {
	key := r.digest(token, path)
	if verdict, ok := r.remembered(key); ok {
		return verdict
	}
	result, _, _ := r.asking.Do(key, func() (any, error) { return r.find(ctx, key, token, path), nil })
	return result.(Verdict)
}

// digest stands for a token and a path. The path is last, so that no two pairs are
// the same text: a token has no NUL, for no header has.
func (r *Reviews) digest(token, path string) string {
	mac := hmac.New(sha256.New, r.secret[:])
	mac.Write([]byte(token + "\x00" + path))
	return string(mac.Sum(nil))
}

func (r *Reviews) remembered(key string) (Verdict, bool) {
	for _, memory := range []*lru.Cache{r.allowed, r.refused} {
		if a, ok := memory.Get(key); ok && time.Now().Before(a.(answer).until) {
			return a.(answer).verdict, true
		}
	}
	return Unknown, false
}

func (r *Reviews) find(ctx context.Context, key, token, path string) Verdict {
	if verdict, ok := r.remembered(key); ok {
		return verdict // somebody has asked since we looked
	}
	if _, known := r.allowed.Get(key); !known && !r.strangers.Allow() {
		return TooMany
	}
	asked := time.Now()
	verdict, err := r.ask(ctx, token, path)
	r.report(ctx, err)
	switch {
	case err != nil:
		return Unknown
	case verdict == Allowed:
		r.allowed.Add(key, answer{verdict, asked.Add(r.options.AllowedFor)})
	default:
		r.allowed.Remove(key)
		r.refused.Add(key, answer{verdict, asked.Add(r.options.RefusedFor)})
	}
	return verdict
}

// ask asks the API server, for all who wait for the answer: that the first of them
// goes away changes nothing for the others.
func (r *Reviews) ask(ctx context.Context, token, path string) (Verdict, error) {
	logger := klog.FromContext(ctx)
	// At -v=8 client-go logs the bodies of requests, and in this one there is a token.
	ctx = klog.NewContext(context.WithoutCancel(ctx), klog.Logger{})
	ctx, cancel := context.WithTimeoutCause(ctx, reviewTimeout, errNoReview)
	defer cancel()

	who, err := r.options.Tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: r.options.Audiences},
	}, metav1.CreateOptions{})
	if err != nil {
		return Unknown, fmt.Errorf("ask whose token it is: %w", because(ctx, err))
	}
	if !who.Status.Authenticated || !r.meant(who.Status.Audiences) {
		return Unauthenticated, nil
	}
	user := who.Status.User
	may, err := r.options.Access.Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra(user.Extra),
			// To ask with HEAD is to get less, and takes no other right.
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return Unknown, fmt.Errorf("ask who may read: %w", because(ctx, err))
	}
	if !may.Status.Allowed || may.Status.Denied {
		logger.V(2).Info("Refused a reader", "user", user.Username, "path", path)
		return Forbidden, nil
	}
	return Allowed, nil
}

// meant reports whether a token with these audiences is for us. A server that does
// not look at audiences returns none.
func (r *Reviews) meant(audiences []string) bool {
	return len(r.options.Audiences) == 0 ||
		slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(r.options.Audiences, a) })
}

func extra(values map[string]authenticationv1.ExtraValue) map[string]authorizationv1.ExtraValue {
	if values == nil {
		return nil
	}
	same := make(map[string]authorizationv1.ExtraValue, len(values))
	for key, value := range values {
		same[key] = authorizationv1.ExtraValue(value)
	}
	return same
}

// because says what took the time, which says more than "deadline exceeded".
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// report logs when asking begins to fail, and when it works again, for all else that
// anybody sees of it is 503.
func (r *Reviews) report(ctx context.Context, err error) {
	logger := klog.FromContext(ctx)
	if err == nil && r.failing.Swap(false) {
		logger.Info("The API server says again who may read over HTTP")
	}
	if err != nil && !r.failing.Swap(true) {
		logger.Error(err, "Readers over HTTP are refused with 503 for as long as the API server does not say who may read")
	}
}
