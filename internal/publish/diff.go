package publish

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Action is what Publish did.
type Action string

// The actions.
const (
	Unchanged Action = "unchanged" // nothing was sent
	Created   Action = "created"
	Updated   Action = "updated"
)

// Result says what a publish did and why.
type Result struct {
	Action Action
	// Reason says why something was written.
	Reason Reason
	// Changes lists what differed, "node-1 2→4", sorted, each once.
	Changes []string
}

// Reason says why a ConfigMap was written.
type Reason string

// The reasons.
const (
	Missing  Reason = "there was none"
	Outdated Reason = "it was left by an earlier run"
	Changed  Reason = "counts changed"
	Deleted  Reason = "somebody deleted it"
	Edited   Reason = "somebody edited it"
)

// Wrote reports whether anything was sent to the API server.
func (r Result) Wrote() bool { return r.Action != Unchanged }

// maxChanges bounds the line that is logged for a publish.
const maxChanges = 8

// String names the first few changes and counts the rest.
func (r Result) String() string {
	if len(r.Changes) <= maxChanges {
		return strings.Join(r.Changes, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(r.Changes[:maxChanges], ", "), len(r.Changes)-maxChanges)
}

// compare says what has to change for have to show want. Labels and annotations
// of others are none of our business and stay; keys of others in the data are
// removed, for a reader could not tell them from nodes.
func compare(have *corev1.ConfigMap, want content) Result {
	changes := differences(have.Data, want.data)
	changes = append(changes, differences(ours(have.Annotations), want.annotations)...)
	for key := range have.BinaryData {
		changes = append(changes, key+" binary→none")
	}
	if have.Labels[labelManagedBy] != manager {
		changes = append(changes, "label "+labelManagedBy)
	}
	if len(changes) == 0 {
		return Result{Action: Unchanged}
	}
	return Result{Action: Updated, Changes: changes}
}

// apply changes cm to show want.
func apply(cm *corev1.ConfigMap, want content) {
	cm.Data, cm.BinaryData = want.data, nil
	maps.DeleteFunc(cm.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, prefix) })
	for key, value := range want.annotations {
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, key, value)
	}
	metav1.SetMetaDataAnnotation(&cm.ObjectMeta, AnnotationObserved, want.observed)
	metav1.SetMetaDataLabel(&cm.ObjectMeta, labelManagedBy, manager)
}

// ours is the part of annotations that is compared.
func ours(annotations map[string]string) map[string]string {
	out := make(map[string]string)
	for key, value := range annotations {
		if strings.HasPrefix(key, prefix) && key != AnnotationObserved {
			out[key] = value
		}
	}
	return out
}

// differences describes each key that is not the same in both, sorted. Nearly
// always there are none among thousands, so only those found are sorted.
func differences(have, want map[string]string) []string {
	var changes []string
	for key, to := range want {
		if from, ok := have[key]; !ok {
			changes = append(changes, key+" none→"+to)
		} else if from != to {
			changes = append(changes, key+" "+from+"→"+to)
		}
	}
	for key, from := range have {
		if _, ok := want[key]; !ok {
			changes = append(changes, key+" "+from+"→none")
		}
	}
	slices.Sort(changes)
	return changes
}
