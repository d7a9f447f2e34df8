package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// shrink makes pods on which the two sides differ as few and as small as they
// still differ. It works on the JSON and knows no field by name: whatever a pod can
// be made of can be dropped, what the generator learns tomorrow included.
func shrink(pods []*corev1.Pod, ours Counter) []*corev1.Pod {
	// Most mistakes take one pod to show; asking each spares most of the work.
	for _, pod := range pods {
		if alone := []*corev1.Pod{pod}; len(pods) > 1 && differ(encode(alone), ours) {
			pods = alone
			break
		}
	}
	tree := encode(pods)
	if !differ(tree, ours) {
		return pods // writing and reading them made the difference
	}
	for again := true; again; {
		again = false
		// The shortest paths come first: whole pods, then containers, then fields.
		for _, path := range paths(tree) {
			for _, change := range []func(any) (any, bool){drop, one, two, half} {
				smaller, ok := edit(tree, path, change)
				if ok && differ(smaller, ours) {
					tree, again = smaller, true
					break
				}
			}
		}
	}
	return decode(tree)
}

func differ(tree any, ours Counter) bool {
	pods := decode(tree)
	if pods == nil {
		return false
	}
	_, mismatches := compare(pods, ours)
	return len(mismatches) > 0
}

// The changes. Each returns what takes the place of a value, and whether it is
// another one; dropped stands for nothing.
type dropped struct{}

func drop(any) (any, bool) { return dropped{}, true }

func one(v any) (any, bool) {
	q, ok := quantity(v)
	return "1", ok && q.CmpInt64(1) != 0
}

// two does not take the place of 1, or the two would take turns for ever.
func two(v any) (any, bool) {
	q, ok := quantity(v)
	return "2", ok && q.CmpInt64(1) != 0 && q.CmpInt64(2) != 0
}

func half(v any) (any, bool) {
	q, ok := quantity(v)
	if !ok || q.CmpInt64(3) <= 0 {
		return nil, false
	}
	return fmt.Sprint(q.Value() / 2), q.Value() > 0
}

func quantity(v any) (resource.Quantity, bool) {
	text, ok := v.(string)
	if !ok {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

// paths lists every place in the tree but the root, short ones first, and of a list
// the last element first: what is dropped then moves none that is still to come.
func paths(tree any) [][]any {
	var out [][]any
	for level := [][]any{nil}; len(level) > 0; {
		var next [][]any
		for _, path := range level {
			switch v := at(tree, path).(type) {
			case map[string]any:
				for _, key := range slices.Sorted(maps.Keys(v)) {
					next = append(next, append(slices.Clone(path), key))
				}
			case []any:
				for i := len(v) - 1; i >= 0; i-- {
					next = append(next, append(slices.Clone(path), i))
				}
			}
		}
		out, level = append(out, next...), next
	}
	return out
}

// at returns what is at a path, nil when the path no longer exists.
func at(tree any, path []any) any {
	for _, step := range path {
		switch v := tree.(type) {
		case map[string]any:
			key, _ := step.(string)
			tree = v[key]
		case []any:
			i, ok := step.(int)
			if !ok || i >= len(v) {
				return nil
			}
			tree = v[i]
		default:
			return nil
		}
	}
	return tree
}

// edit returns a copy of the tree with the change made at the path; the parts that
// do not change are shared. The name of a pod stays: it says which pod it was.
func edit(tree any, path []any, change func(any) (any, bool)) (any, bool) {
	if len(path) > 1 && path[1] == "metadata" && (len(path) == 2 || path[2] == "name") {
		return nil, false
	}
	return editBelow(tree, path, change)
}

func editBelow(tree any, path []any, change func(any) (any, bool)) (any, bool) {
	if len(path) == 0 {
		if tree == nil {
			return nil, false
		}
		return change(tree)
	}
	switch v := tree.(type) {
	case map[string]any:
		key, _ := path[0].(string)
		value, ok := editBelow(v[key], path[1:], change)
		if !ok {
			return nil, false
		}
		copied := maps.Clone(v)
		if copied[key] = value; value == (dropped{}) {
			delete(copied, key)
		}
		return copied, true
	case []any:
		i, ok := path[0].(int)
		if !ok || i >= len(v) {
			return nil, false
		}
		value, ok := editBelow(v[i], path[1:], change)
		if !ok {
			return nil, false
		}
		copied := slices.Clone(v)
		if copied[i] = value; value == (dropped{}) {
			copied = slices.Delete(copied, i, i+1)
		}
		return copied, true
	}
	return nil, false
}

func encode(pods []*corev1.Pod) (tree any) {
	text, err := json.Marshal(pods)
	if err == nil {
		err = json.Unmarshal(text, &tree)
	}
	if err != nil {
		panic(fmt.Sprintf("a generated pod does not encode: %v", err)) // it has only fields of the API
	}
	return tree
}

// decode returns nil for a tree that is no list of pods any more.
func decode(tree any) (pods []*corev1.Pod) {
	text, err := json.Marshal(tree)
	if err != nil || json.Unmarshal(text, &pods) != nil {
		return nil
	}
	return pods
}
