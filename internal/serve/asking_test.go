package serve

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// TestEqualQuestionsAreOne, and whoever asked first may go away.
func TestEqualQuestionsAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{identify: func(ctx context.Context, _ *authenticationv1.TokenReviewStatus) error {
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		reviews := r.reviews()
		first, leave := context.WithCancel(quiet())
		var wg sync.WaitGroup
		decide := func(ctx context.Context) {
			if got := reviews.Decide(ctx, "good", "/metrics"); got != Allowed {
				t.Errorf("verdict %d", got)
			}
		}
		wg.Go(func() { decide(first) })
		synctest.Wait()
		for range 50 {
			wg.Go(func() { decide(quiet()) })
		}
		synctest.Wait()
		leave()
		wg.Wait()
		if n := r.count(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestASilentServerIsGivenUp after five seconds for both answers together, and it is
// logged once and not for each reader; as is its return.
func TestASilentServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := true
		r := &reviewer{
			identify: func(context.Context, *authenticationv1.TokenReviewStatus) error {
				time.Sleep(2 * time.Second)
				return nil
			},
			authorize: func(ctx context.Context, _ *authorizationv1.SubjectAccessReviewStatus) error {
				if silent {
					<-ctx.Done()
				}
				return ctx.Err()
			},
		}
		reviews := r.reviews()
		ctx, log := logged(t, 1)
		begin := time.Now()
		for i := range 3 {
			if got := reviews.Decide(ctx, "good", "/metrics"); got != Unknown {
				t.Errorf("verdict %d", got)
			}
			if took := time.Since(begin); took != time.Duration(i+1)*5*time.Second {
				t.Errorf("%d answers took %v", i+1, took)
			}
		}
		says(1, "ask who may read: no answer within 5s", log(), t)
		silent = false
		for range 2 {
			reviews.Decide(ctx, "good", "/metrics")
		}
		says(1, "says again who may read", log(), t)
		silent = true
		time.Sleep(time.Minute)
		reviews.Decide(ctx, "good", "/metrics")
		says(2, "no answer within 5s", log(), t)
	})
}

// TestStrangersAreLimited: 20 at once and 5 a second may make us ask. Those who were
// let in before do not suffer from it.
func TestStrangersAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{}
		reviews := r.reviews()
		next := 0
		crowd := func(want int) {
			t.Helper()
			before, refused := r.count(), 0
			for range 100 {
				next++
				switch got := reviews.Decide(quiet(), fmt.Sprintf("bad-%d", next), "/metrics"); got {
				case TooMany:
					refused++
				case Unauthenticated:
				default:
					t.Fatalf("verdict %d", got)
				}
			}
			if asked := r.count() - before; asked != want || refused != 100-want {
				t.Errorf("%d questions and %d refusals from 100 strangers, want %d questions", asked, refused, want)
			}
		}
		if got := reviews.Decide(quiet(), "good", "/metrics"); got != Allowed {
			t.Fatalf("verdict %d", got)
		}
		crowd(19)
		time.Sleep(time.Second)
		crowd(5)
		time.Sleep(time.Minute - time.Second)
		crowd(20)
		if got := reviews.Decide(quiet(), "good", "/metrics"); got != Allowed {
			t.Errorf("a reader from before: verdict %d", got)
		}
	})
}

// TestARefusedReaderIsAStranger again, whatever they were before.
func TestARefusedReaderIsAStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{}
		reviews := r.reviews()
		reviews.Decide(quiet(), "good", "/metrics")
		r.authorize = refusing().authorize
		time.Sleep(time.Minute)
		for i, want := range []Verdict{Forbidden, TooMany} {
			if got := reviews.Decide(quiet(), "good", "/metrics"); got != want {
				t.Errorf("decision %d is %d, want %d", i, got, want)
			}
			for reviews.strangers.Allow() { // a crowd
			}
			time.Sleep(10 * time.Second)
			reviews.strangers.AllowN(time.Now(), strangersAtOnce)
		}
	})
}

// TestMemoryIsBounded, and strangers do not push readers out of it.
func TestMemoryIsBounded(t *testing.T) {
	r := &reviewer{}
	reviews := r.reviews()
	reviews.strangers = rate.NewLimiter(rate.Inf, 0)
	reviews.Decide(quiet(), "good", "/metrics")
	for i := range 3 * maxRefused {
		reviews.Decide(quiet(), fmt.Sprintf("bad-%d", i), "/metrics")
	}
	before := r.count()
	reviews.Decide(quiet(), "good", "/metrics")
	if r.count() != before {
		t.Error("a reader was forgotten for strangers")
	}
	for i := range 3 * maxAllowed {
		reviews.Decide(quiet(), "good", fmt.Sprintf("/%d", i))
	}
	if a, b := reviews.allowed.Len(), reviews.refused.Len(); a > maxAllowed || b > maxRefused {
		t.Errorf("%d and %d answers are remembered", a, b)
	}
}

// TestDigests are of this process, and of one token and path.
func TestDigests(t *testing.T) {
	a, b := (&reviewer{}).reviews(), (&reviewer{}).reviews()
	if a.digest("t", "/") == b.digest("t", "/") {
		t.Error("a digest can be made by others")
	}
	if a.digest("t", "/a") == a.digest("t/", "a") {
		t.Error("two different questions have the same digest")
	}
}
