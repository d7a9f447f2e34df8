package publish

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// ErrFenced is returned when a leader of a later term has published. Our own term is
// over, and nothing is written in it any more.
var ErrFenced = errors.New("a leader of a later term has published")

// ErrBehind is returned when what is published was computed from something newer
// than what we have seen. Our watch will catch up; until then nothing is written.
var ErrBehind = errors.New("what is published is newer than what we have seen")

// Term is the term in which a ConfigMap was last written, 0 for none. A Lease has 32
// bits for it: what is beyond was never written by a leader and would keep all of
// them from writing for ever.
func Term(cm *corev1.ConfigMap) int64 {
	if cm == nil {
		return 0
	}
	term, err := strconv.ParseInt(cm.Annotations[AnnotationTerm], 10, 32)
	if err != nil || term < 0 || term == math.MaxInt32 {
		return 0
	}
	return term
}

// fenceTerm keeps an earlier term from writing over a later one. The first thing that
// a leader does is to write its own term, so that whatever an earlier one has on its
// way meets a conflict, and whatever it thinks of later meets this.
func fenceTerm(have *corev1.ConfigMap, ours int64) error {
	if theirs := Term(have); ours > 0 && theirs > ours {
		return fmt.Errorf("ConfigMap %s/%s: %w: %d there, %d here", have.Namespace, have.Name, ErrFenced, theirs, ours)
	}
	return nil
}

// versions spells out what a snapshot was computed from, "pods@123 nodes@120": each
// store that was read, by the name that RBAC has for it.
func versions(o count.Observed) string {
	text := "pods@" + o.Pods
	for _, store := range [...][2]string{
		{"nodes", o.Nodes}, {"deviceclasses", o.Classes}, {"resourceslices", o.Slices}, {"resourceclaims", o.Claims},
	} {
		if store[1] != "" {
			text += " " + store[0] + "@" + store[1]
		}
	}
	return text
}

// fence keeps an older observation from replacing a newer one: what is published was
// computed from changes that we have to have seen, at least, for what we say to be
// newer. seen is up to where our stores are complete. Two controllers may
// believe for a moment that it is their turn, and one of them may have been asleep;
// what it wakes up with has a valid resourceVersion as soon as its cache of our own
// ConfigMaps is ahead of that of pods.
//
// The annotation may have been edited. It blocks nothing that it cannot explain: it
// was written after what it names had happened, so no version in it can be above
// the object's own. (Those of another resource compare because one etcd counts
// them all. Where resources lie in several etcds, some are taken as impossible and
// the fence is open, which is where we were without it.)
func fence(have *corev1.ConfigMap, seen string) error {
	if have == nil {
		return nil
	}
	published := make(map[string]string)
	for resource, version := range each(have.Annotations[AnnotationObserved]) {
		published[resource] = version
	}
	for resource, version := range each(seen) {
		theirs := published[resource]
		if older(version, theirs) && !older(have.ResourceVersion, theirs) {
			return fmt.Errorf("ConfigMap %s/%s: %w: %s@%s there, %s@%s here", have.Namespace, have.Name, ErrBehind, resource, theirs, resource, version)
		}
	}
	return nil
}

// each yields the parts of "pods@123 nodes@120".
func each(observed string) func(yield func(resource, version string) bool) {
	return func(yield func(string, string) bool) {
		for part := range strings.FieldsSeq(observed) {
			resource, version, ok := strings.Cut(part, "@")
			if ok && !yield(resource, version) {
				return
			}
		}
	}
}
