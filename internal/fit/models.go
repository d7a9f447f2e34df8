package fit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// MatchModels finds the models of a resource that somebody means: the one of that name,
// or else all that have it in their name, in whatever case, as H100 means
// NVIDIA-H100-80GB-HBM3. An empty name means any, and the result is then nil. The error
// names the choices.
func MatchModels(snap *count.Snapshot, resource, name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	var all, found []string
	for _, m := range snap.Of(resource).Models {
		if m.Name == name {
			return []string{name}, nil
		}
		all = append(all, m.Name)
		if strings.Contains(strings.ToLower(m.Name), strings.ToLower(name)) {
			found = append(found, m.Name)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case len(all) == 0:
		return nil, fmt.Errorf("no model is called %s: there is no %s", name, resource)
	}
	slices.Sort(all)
	return nil, fmt.Errorf("no model of %s is called %s: there are %s", resource, name, strings.Join(all, ", "))
}

// ResourceOf is the GPU resource that a question is about.
func ResourceOf(q *Question, snap *count.Snapshot) (string, error) {
	if q.Pod == nil {
		return q.Resource, nil
	}
	requests := requestsOf(q.Pod)
	for i := range snap.Summaries {
		if resource := snap.Summaries[i].Resource; requests[corev1.ResourceName(resource)] > 0 {
			return resource, nil
		}
	}
	return "", fmt.Errorf("the pods of %s ask for no GPU that there is", q.Name)
}
