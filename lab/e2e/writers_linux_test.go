package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	// As the API server records of a token who has it and which one it is.
	extraPod        = "authentication.kubernetes.io/pod-name"
	extraCredential = "authentication.kubernetes.io/credential-id"
)

// requests are what the pods of an installation have asked of the API server, in the
// order in which it answered.
func (e *env) requests(s site, wanted func(*auditv1.Event) bool) (found []auditv1.Event) {
	e.Helper()
	log, err := os.Open(lab.plane.AuditLog())
	e.must(err)
	defer log.Close()
	user := "system:serviceaccount:" + s.namespace + ":" + s.controller()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if !strings.Contains(lines.Text(), user) || json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // somebody else's, or the line that is being written
		}
		if event.User.Username == user && event.Stage == auditv1.StageResponseComplete && wanted(&event) {
			found = append(found, event)
		}
	}
	e.must(lines.Err())
	return found
}

// write is one that was accepted.
type write struct {
	pod         string
	began, done time.Time
}

// writes are those to the common installation's ConfigMaps.
func (e *env) writes() []write { return e.writesOf(e.site) }

func (e *env) writesOf(s site) (found []write) {
	e.Helper()
	for _, event := range e.requests(s, func(event *auditv1.Event) bool {
		return event.ObjectRef != nil && event.ObjectRef.Resource == "configmaps" && event.ObjectRef.Namespace == s.namespace &&
			slices.Contains([]string{"create", "update", "patch", "delete"}, event.Verb) &&
			event.ResponseStatus != nil && event.ResponseStatus.Code < 300
	}) {
		found = append(found, write{
			strings.Join(event.User.Extra[extraPod], ""), event.RequestReceivedTimestamp.Time, event.StageTimestamp.Time,
		})
	}
	slices.SortFunc(found, func(a, b write) int { return a.began.Compare(b.began) })
	return found
}

// oneWriterAtATime: no write of a pod begins before those of the one that wrote before it
// are over, and nobody who was replaced writes again. It returns the longest time between
// two writes, and how many pods have written.
func (e *env) oneWriterAtATime(writes []write) (gap time.Duration, writers int) {
	e.Helper()
	over := map[string]bool{}
	for i := 1; i < len(writes); i++ {
		last, now := writes[i-1], writes[i]
		gap = max(gap, now.began.Sub(last.done))
		if now.pod == last.pod {
			continue
		}
		over[last.pod] = true
		if now.began.Before(last.done) {
			e.Errorf("%s began to write at %v, and %s was not done before %v", now.pod, now.began, last.pod, last.done)
		}
		if over[now.pod] {
			e.Errorf("%s wrote at %v, after %s had replaced it", now.pod, now.began, last.pod)
		}
	}
	if len(writes) == 0 {
		return 0, 0
	}
	return gap, len(over) + 1
}

// leaseDuration is how long others wait for a leader that does not answer.
func (e *env) leaseDuration() time.Duration {
	e.Helper()
	lease, err := e.client.CoordinationV1().Leases(e.site.namespace).Get(e.Context(), e.site.controller(), metav1.GetOptions{})
	e.must(err)
	return time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}
