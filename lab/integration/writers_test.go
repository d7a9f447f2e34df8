package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// span is the time in which one user's writes took place, by the API server's clock.
type span struct {
	user        string
	first, last time.Time
}

// oneWriterAtATime reads in the audit log who wrote to the ConfigMaps of the test, and
// when: each replica's accepted writes, from the arrival of the first to the answer to
// the last, must be over before the next replica's begin. A replica leads once at most.
func (e *env) oneWriterAtATime(writers int) {
	e.Helper()
	var spans []span
	e.eventually("the audit log to show every writer", func() (err error) {
		if spans, err = e.writers(); err == nil && len(spans) != writers {
			err = fmt.Errorf("there are %d: %v", len(spans), spans)
		}
		return err
	})
	for i := 1; i < len(spans); i++ {
		if before := spans[i-1]; !before.last.Before(spans[i].first) {
			e.Errorf("%s was still writing at %v, when %s had begun at %v", before.user, before.last, spans[i].user, spans[i].first)
		}
	}
}

// writers are the replicas that wrote, in the order in which they began.
func (e *env) writers() ([]span, error) {
	log, err := os.Open(e.plane.AuditLog())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	byUser := map[string]*span{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if !strings.Contains(lines.Text(), e.namespace) {
			continue
		}
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // the line that is being written
		}
		if !e.wrote(&event) {
			continue
		}
		s := byUser[event.User.Username]
		if s == nil {
			s = &span{user: event.User.Username, first: event.RequestReceivedTimestamp.Time}
			byUser[s.user] = s
		}
		if event.RequestReceivedTimestamp.Time.Before(s.first) {
			s.first = event.RequestReceivedTimestamp.Time
		}
		if event.StageTimestamp.After(s.last) {
			s.last = event.StageTimestamp.Time
		}
	}
	var spans []span
	for _, s := range byUser {
		spans = append(spans, *s)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.first.Compare(b.first) })
	return spans, lines.Err()
}

// wrote reports whether a line tells of a replica's write to a ConfigMap that was
// accepted.
func (e *env) wrote(event *auditv1.Event) bool {
	writes := []string{"create", "update", "patch", "delete"}
	return event.Stage == auditv1.StageResponseComplete && event.ResponseStatus != nil && event.ResponseStatus.Code < 300 &&
		slices.Contains(writes, event.Verb) && event.ObjectRef != nil && event.ObjectRef.Resource == "configmaps" &&
		event.ObjectRef.Namespace == e.namespace && strings.HasPrefix(event.User.Username, e.namespace+"-replica-")
}
