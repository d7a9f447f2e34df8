package fit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	strict "sigs.k8s.io/json"
)

// ReadQuestions reads manifests, YAML or JSON, one document or several, lists too: a
// question for each pod or workload, in their order. name is what errors call the
// input; namespace is that of objects which name none.
func ReadQuestions(name string, r io.Reader, namespace string) ([]Question, error) {
	m := manifests{namespace: namespace}
	decoder := yaml.NewYAMLOrJSONDecoder(r, 4096)
	for document := 1; ; document++ {
		var raw runtime.RawExtension
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && !empty(raw.Raw) {
			err = m.read(raw.Raw)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", name, document, err)
		}
	}
	if len(m.questions) == 0 {
		return nil, fmt.Errorf("%s has no object: want %s", name, kinds)
	}
	return m.questions, nil
}

const kinds = "a Pod, Deployment, StatefulSet, ReplicaSet, ReplicationController, Job or CronJob"

func empty(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

type manifests struct {
	namespace string
	questions []Question
}

// read takes an object by its version and kind.
func (m *manifests) read(raw []byte) error {
	var object struct {
		metav1.TypeMeta
		Items []json.RawMessage
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return fmt.Errorf("not a Kubernetes object: %w", err)
	}
	if object.Items != nil && strings.HasSuffix(object.Kind, "List") {
		for i, item := range object.Items {
			if err := m.read(item); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	}
	switch object.APIVersion + " " + object.Kind {
	case "v1 Pod":
		return typed(raw, m.pod)
	case "apps/v1 Deployment":
		return typed(raw, m.deployment)
	case "apps/v1 StatefulSet":
		return typed(raw, m.statefulSet)
	case "apps/v1 ReplicaSet":
		return typed(raw, func(o *appsv1.ReplicaSet) error {
			return m.template("replicaset", o.ObjectMeta, o.Spec.Template, ptr.Deref(o.Spec.Replicas, 1))
		})
	case "v1 ReplicationController":
		return typed(raw, func(o *corev1.ReplicationController) error {
			if o.Spec.Template == nil {
				return errors.New("spec.template is missing")
			}
			return m.template("replicationcontroller", o.ObjectMeta, *o.Spec.Template, ptr.Deref(o.Spec.Replicas, 1))
		})
	case "batch/v1 Job":
		return typed(raw, func(o *batchv1.Job) error { return m.job("job", o.ObjectMeta, &o.Spec) })
	case "batch/v1 CronJob":
		return typed(raw, func(o *batchv1.CronJob) error { return m.job("cronjob", o.ObjectMeta, &o.Spec.JobTemplate.Spec) })
	case "apps/v1 DaemonSet":
		return errors.New("a DaemonSet has one pod on each node that it selects, and no number of copies: ask for one of its pods, as a Pod")
	case " ":
		return errors.New("apiVersion and kind are missing: want " + kinds)
	}
	return fmt.Errorf("%s of %s is not known: want %s", object.Kind, object.APIVersion, kinds)
}

// typed decodes as strictly as kubectl apply does: a field that is misspelt would
// otherwise be left out, and the answer be wrong.
func typed[T any](raw []byte, take func(*T) error) error {
	object := new(T)
	unknown, err := strict.UnmarshalStrict(raw, object)
	if err == nil {
		err = errors.Join(unknown...)
	}
	if err != nil {
		return err
	}
	return take(object)
}

func (m *manifests) pod(p *corev1.Pod) error {
	var notes []string
	if p.Status.Phase != "" && p.Spec.NodeName != "" {
		notes = append(notes, "the pod is on node "+p.Spec.NodeName+" already: the question is whether another one like it fits")
		p.Spec.NodeName = ""
	}
	return m.ask("pod", p.ObjectMeta, corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}, 1, nil, notes)
}

func (m *manifests) deployment(o *appsv1.Deployment) error {
	// The controller adds the hash of the template. What it will be nobody knows, but it
	// is one that the pods of earlier templates do not have.
	labels := map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "of-this-template"}
	return m.ask("deployment", o.ObjectMeta, o.Spec.Template, ptr.Deref(o.Spec.Replicas, 1), labels, nil)
}

func (m *manifests) statefulSet(o *appsv1.StatefulSet) error {
	var notes []string
	if len(o.Spec.VolumeClaimTemplates) > 0 {
		notes = append(notes, "volumes are not judged, and may tie pods to a zone or a node: volumeClaimTemplates")
	}
	return m.ask("statefulset", o.ObjectMeta, o.Spec.Template, ptr.Deref(o.Spec.Replicas, 1), nil, notes)
}

// job asks for the pods that run at the same time.
func (m *manifests) job(kind string, meta metav1.ObjectMeta, spec *batchv1.JobSpec) error {
	copies := ptr.Deref(spec.Parallelism, 1)
	if spec.Completions != nil {
		copies = min(copies, *spec.Completions)
	}
	var notes []string
	if ptr.Deref(spec.Suspend, false) {
		notes = append(notes, "the job is suspended: it has no pods before that ends")
	}
	var labels map[string]string
	if kind == "job" && meta.Name != "" {
		labels = map[string]string{batchv1.JobNameLabel: meta.Name, "job-name": meta.Name}
	}
	return m.ask(kind, meta, spec.Template, copies, labels, notes)
}

func (m *manifests) template(kind string, meta metav1.ObjectMeta, template corev1.PodTemplateSpec, copies int32) error {
	return m.ask(kind, meta, template, copies, nil, nil)
}

// ask adds a question, with a pod as the controller and the API server would make it.
func (m *manifests) ask(kind string, meta metav1.ObjectMeta, template corev1.PodTemplateSpec, copies int32, labels map[string]string, notes []string) error {
	name := meta.Name
	if name == "" {
		name = meta.GenerateName
	}
	if len(template.Spec.Containers) == 0 {
		return fmt.Errorf("%s/%s has no containers", kind, name)
	}
	if copies < 0 {
		return fmt.Errorf("%s/%s asks for %d copies", kind, name, copies)
	}
	p := &corev1.Pod{Spec: template.Spec}
	p.Namespace, p.Labels = meta.Namespace, make(map[string]string)
	if p.Namespace == "" {
		p.Namespace = m.namespace
	}
	for _, from := range []map[string]string{labels, template.Labels} {
		for key, value := range from {
			p.Labels[key] = value
		}
	}
	setDefaults(p)
	m.questions = append(m.questions, Question{Name: kind + "/" + name, Copies: int64(copies), Pod: p, Notes: notes})
	return nil
}
