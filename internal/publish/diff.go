package publish

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// compare says what has to change for have to show want; have may be nil. Labels
// and annotations of others are none of our business and stay; keys of others in
// the data are removed, for a reader could not tell them from nodes.
func compare(have *corev1.ConfigMap, want content) []string {
	if have == nil {
		have = &corev1.ConfigMap{}
	}
	var changes []string
	if !want.same {
		changes = differences(have.Data, want.data)
	}
	changes = append(changes, differences(ours(have.Annotations), want.annotations)...)
	for _, key := range slices.Sorted(maps.Keys(have.BinaryData)) {
		changes = append(changes, key+" binary→none")
	}
	for _, key := range slices.Sorted(maps.Keys(want.labels)) {
		if have.Labels[key] != want.labels[key] {
			changes = append(changes, "label "+key)
		}
	}
	return changes
}

// apply changes cm to show want.
func apply(cm *corev1.ConfigMap, want content) {
	cm.Data, cm.BinaryData = want.data, nil
	maps.DeleteFunc(cm.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, prefix) })
	for key, value := range want.annotations {
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, key, value)
	}
	if want.observed != "" {
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, AnnotationObserved, want.observed)
	}
	for key, value := range want.labels {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, key, value)
	}
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
			changes = append(changes, change(key, "none", to))
		} else if from != to {
			changes = append(changes, change(key, from, to))
		}
	}
	for key, from := range have {
		if _, ok := want[key]; !ok {
			changes = append(changes, change(key, from, "none"))
		}
	}
	slices.Sort(changes)
	return changes
}

// longValue is what no longer fits into a line that is read by people.
const longValue = 32

func change(key, from, to string) string {
	if len(from) > longValue || len(to) > longValue {
		return fmt.Sprintf("%s (%d→%d bytes)", key, len(from), len(to))
	}
	return key + " " + from + "→" + to
}
