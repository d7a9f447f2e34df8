package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

const (
	// atOnce is how many questions are under way, few enough for any client's limits.
	atOnce = 8
	// patience is how long all questions together may take.
	patience = 10 * time.Second
)

var errNoAnswer = fmt.Errorf("no answer within %v", patience)

// Client is the part of a Kubernetes client that asks about oneself.
type Client interface {
	AuthenticationV1() authenticationv1client.AuthenticationV1Interface
	AuthorizationV1() authorizationv1client.AuthorizationV1Interface
}

// Ask asks the API server who we are and what of the needs we may do.
func Ask(ctx context.Context, client Client, needs []Need) (Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoAnswer)
	defer cancel()
	report, err := Check(ctx, client.AuthorizationV1().SelfSubjectAccessReviews(), needs)
	if err != nil {
		return report, err
	}
	// To know the name is good for the text. That it is not told, as by servers before
	// 1.28, changes no answer.
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err == nil {
		report.User = self.Status.UserInfo.Username
	}
	return report, nil
}

// Check asks the API server which of the needs we are allowed, each verb by itself.
// An error means that it could not be asked; what is missing is in the report.
func Check(ctx context.Context, client authorizationv1client.SelfSubjectAccessReviewInterface, needs []Need) (Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoAnswer)
	defer cancel()
	var answers []Answer
	for _, need := range needs {
		for _, verb := range need.Verbs {
			answers = append(answers, Answer{Need: need, Verb: verb})
		}
	}
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error // those after it are of questions that were taken back
	)
	room := make(chan struct{}, atOnce)
	for i := range answers {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			if err := answers[i].ask(ctx, client); err != nil {
				once.Do(func() { first = err })
				cancel()
			}
		})
	}
	wg.Wait()
	if first != nil {
		return Report{}, explain(first)
	}
	return Report{Answers: answers}, nil
}

// ask fills in what the API server says.
func (a *Answer) ask(ctx context.Context, client authorizationv1client.SelfSubjectAccessReviewInterface) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	review, err := client.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: a.Group, Resource: a.Resource, Subresource: a.Subresource,
			Namespace: a.Namespace, Name: a.Name, Verb: a.Verb,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx) // says more than "context canceled"
		}
		return err
	}
	a.Allowed, a.Reason, a.EvaluationError = review.Status.Allowed, review.Status.Reason, review.Status.EvaluationError
	return nil
}

// explain says why there is no answer.
func explain(err error) error {
	var transport *url.Error
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not know us, and so says nothing of our permissions: %w", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the API server does not let us ask for our own permissions: %w", err)
	case errors.Is(err, errNoAnswer) || errors.As(err, &transport):
		return fmt.Errorf("the API server cannot be reached, and so nothing is known of our permissions: %w", err)
	default:
		return fmt.Errorf("ask the API server for our permissions: %w", err)
	}
}
