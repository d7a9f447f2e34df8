package publish

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxValueBytes is what the API server takes in the values of one ConfigMap.
const maxValueBytes = 1 << 20

// ErrTooLarge is returned for an object that cannot be written at its size. It is
// never made to fit by leaving something out.
var ErrTooLarge = errors.New("too large")

const whatToDo = "count less with --watch-namespace or --pod-selector, do without with --capacity-name=\"\", or have smaller parts with --max-object-bytes"

// checkSize says beforehand, and in bytes, what the API server would say without.
// Only the part of an object that is not rows can come to this.
func (o *object) checkSize(data map[string]string) error {
	values, largest := 0, ""
	for key, value := range data {
		if values += len(value); len(value) > len(data[largest]) {
			largest = key
		}
	}
	if values <= maxValueBytes {
		return nil
	}
	return fmt.Errorf("ConfigMap %s: %w: it would hold %d bytes, %d of them in %s, where the API server takes %d (%s)",
		o, ErrTooLarge, values, len(data[largest]), largest, maxValueBytes, whatToDo)
}

// refused explains what the API server says of an object that is too large for it,
// or for etcd, or for the way to etcd. Only the first has a status of its own, the
// others are known by their text. (The server has by then tried once more without
// managedFields.)
func (o *object) refused(verb string, err error, data map[string]string) error {
	tooLarge := apierrors.IsRequestEntityTooLargeError(err)
	for _, text := range []string{"request is too large", "message larger than max"} {
		tooLarge = tooLarge || strings.Contains(err.Error(), text)
	}
	if !tooLarge {
		return o.failed(verb, err)
	}
	return fmt.Errorf("ConfigMap %s: %w: %s: %w; its keys and values have %d bytes (%s)", o, ErrTooLarge, verb, err, weigh(data), whatToDo)
}

// advise adds what to do to errors whose text does not say it.
func advise(err error) error {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("%w (the namespace is being deleted: choose another with --namespace)", err)
	case apierrors.IsNotFound(err) && concerns(err, "namespaces"):
		return fmt.Errorf("%w (create it, or choose another with --namespace)", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w (deploy/manifests/rbac.yaml has the rules that are needed)", err)
	case apierrors.IsInvalid(err):
		return fmt.Errorf("%w (if somebody made it immutable, delete it: it will be written anew)", err)
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%w (it lacks our labels, or the cache is behind: the next try reads it)", err)
	}
	return err
}

// concerns reports whether a status error is about an object of the given kind.
func concerns(err error, kind string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == kind
}

// failures are several errors on one line, as a log is read. nil if there are none.
type failures []error

func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return failures(errs)
}

func (f failures) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (f failures) Unwrap() []error { return f }
