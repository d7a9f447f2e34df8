package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// notOwned are fields of a pod that neither of the two managers sets: admission, the
// scheduler and the server's defaults do, and they leave no entry.
var notOwned = []string{
	"nodeName", "serviceAccount", "tolerations", "priority", "preemptionPolicy", "enableServiceLinks", "qosClass", "images", "addresses", "daemonEndpoints",
}

// manage adds a managedFields entry of that manager for the top-level part of the
// object, as the server would have made it: managedFields are a third of a pod on the wire,
// and a benchmark without them would flatter everybody.
func manage(obj metav1.Object, manager, subresource, part string, at metav1.Time) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("read fields of %s: %w", obj.GetName(), err)
	}
	owned := map[string]any{}
	if part == "spec" {
		owned["f:metadata"] = fieldSet(pick(content["metadata"], "annotations", "labels", "generateName", "ownerReferences"))
	}
	owned["f:"+part] = fieldSet(content[part])
	for _, other := range notOwned {
		delete(owned["f:"+part].(map[string]any), "f:"+other)
	}
	raw, err := json.Marshal(owned)
	if err != nil {
		return fmt.Errorf("encode fields of %s: %w", obj.GetName(), err)
	}
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes(raw)
	obj.SetManagedFields(append(obj.GetManagedFields(), metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: fields, Subresource: subresource,
	}))
	return nil
}

func pick(v any, keys ...string) map[string]any {
	from, _ := v.(map[string]any)
	out := map[string]any{}
	for _, key := range keys {
		if value, ok := from[key]; ok {
			out[key] = value
		}
	}
	return out
}

// fieldSet is the set of fields of v in the form of managedFields: a leaf is {},
// lists of named things are maps by name.
func fieldSet(v any) map[string]any {
	set := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if key == "containerStatuses" {
				value = nil // owned as one
			}
			set["f:"+key] = fieldSet(value)
		}
	case []any:
		for _, item := range v {
			m, ok := item.(map[string]any)
			if !ok {
				return map[string]any{} // a list of plain values is owned as one
			}
			for _, key := range []string{"uid", "mountPath", "containerPort", "name", "type", "ip"} {
				if value, ok := m[key]; ok {
					text := strings.ReplaceAll(fmt.Sprintf("%#v", value), "\n", "")
					entry := fieldSet(item)
					entry["."] = map[string]any{}
					set[fmt.Sprintf("k:{%q:%s}", key, cmp.Or(text, `""`))] = entry
					break
				}
			}
		}
	}
	return set
}
