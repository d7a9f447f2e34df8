package count

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// maxModels is how many models a pod may name. One that names more counts as if it
// named none: what is kept of a pod has to have a bound.
const maxModels = 64

// productKeys are the labels that name models.
var productKeys = slices.Compact(slices.Sorted(maps.Values(productLabels)))

// modelsOf are the product labels one of which a node has to have for a pod, in order,
// nil if it need have none (P2).
func modelsOf(spec *corev1.PodSpec) (models []Label) {
	if len(spec.NodeSelector) == 0 && spec.Affinity == nil {
		return nil
	}
	for _, key := range productKeys {
		for _, value := range valuesOf(spec, key) {
			models = append(models, Label{key, value})
		}
	}
	if len(models) > maxModels {
		return nil
	}
	return models
}

// valuesOf is what a label of the node may be, in order, nil for whatever. A node
// selector and the required node affinity both have to hold; where they exclude each
// other, what the selector names is what people will look for.
func valuesOf(spec *corev1.PodSpec, key string) []string {
	if value, ok := spec.NodeSelector[key]; ok {
		return []string{value}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return nil
	}
	var values []string
	for i := range required.NodeSelectorTerms { // one has to hold
		term := &required.NodeSelectorTerms[i]
		if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
			continue // it holds nowhere
		}
		named, ok := namedBy(term.MatchExpressions, key)
		if !ok {
			return nil
		}
		values = append(values, named...)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// namedBy is what a label may be for all of some requirements to hold, false if they do
// not name its values. Only In does: all others leave out some, or none.
func namedBy(requirements []corev1.NodeSelectorRequirement, key string) (values []string, ok bool) {
	for _, r := range requirements {
		switch {
		case r.Key != key || r.Operator != corev1.NodeSelectorOpIn:
		case !ok:
			values, ok = slices.Clone(r.Values), true
		default:
			values = slices.DeleteFunc(values, func(value string) bool { return !slices.Contains(r.Values, value) })
		}
	}
	return values, ok
}

// Models are those that the node has to be one of for the pod's devices of a resource,
// in order; empty if any will do, and for a pod that has a node (P2).
func (p *Pod) Models(resource string) (models []string) {
	domain, _, _ := strings.Cut(resource, "/")
	for _, label := range p.models() {
		if label.Key == productLabels[domain] {
			models = append(models, label.Value)
		}
	}
	return models
}

// choice is demand of one pod, and the models that it names, of which there are some.
type choice struct {
	models  []string
	devices int64
}

// choose splits the waiting demand by the models that there are.
func (s *sum) choose(p *Pending, models []Model) {
	at := make(map[string]*Model, len(models))
	for i := range models {
		at[models[i].Name] = &models[i]
	}
	p.AnyModel = s.anyModel
	for _, c := range s.choices {
		there := slices.DeleteFunc(c.models, func(name string) bool { return at[name] == nil })
		var of *int64
		switch len(there) {
		case 0:
			of = &p.AbsentModel
		case 1:
			of = &at[there[0]].Pending
		default:
			of = &p.SeveralModels
		}
		*of = add(*of, c.devices)
	}
}
