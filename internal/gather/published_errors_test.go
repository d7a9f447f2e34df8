package gather

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// TestNotPublished: what is wrong, and what to do.
func TestNotPublished(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	edit := func(name string, change func(*corev1.ConfigMap)) func(*testing.T, *fake.Clientset) {
		return func(t *testing.T, client *fake.Clientset) {
			api := client.CoreV1().ConfigMaps(testNamespace)
			cm, err := api.Get(t.Context(), name, metav1.GetOptions{})
			if err == nil {
				change(cm)
				_, err = api.Update(t.Context(), cm, metav1.UpdateOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	refuse := func(name string, refusal error) func(*testing.T, *fake.Clientset) {
		return func(_ *testing.T, client *fake.Clientset) {
			client.PrependReactor("get", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
				return a.(clienttesting.GetAction).GetName() == name, nil, refusal
			})
		}
	}
	const shard = testCapacity + "-shard-0002"
	for name, tc := range map[string]struct {
		prepare func(*testing.T, *fake.Clientset)
		read    string // another name
		want    string
	}{
		"not there": {read: "other", want: `get ConfigMap gpus/other: configmaps "other" not found (is the controller installed, and is this its namespace and --capacity-name? ` +
			`"kubectl get configmaps -A -l app.kubernetes.io/managed-by=gpu-summary-controller" finds what is published)`},
		"forbidden": {prepare: refuse(testCapacity, apierrors.NewForbidden(configMaps, testCapacity, errors.New("not for you"))),
			want: `get ConfigMap gpus/gpu-capacity: configmaps "gpu-capacity" is forbidden: not for you (ask for a Role in namespace gpus with the verb get on configmaps, for this one and its shards)`},
		"shards forbidden": {prepare: refuse(shard, apierrors.NewForbidden(configMaps, shard, errors.New("not for you"))),
			want: `get ConfigMap gpus/gpu-capacity-shard-0002: configmaps "gpu-capacity-shard-0002" is forbidden: not for you (ask for a Role in namespace gpus with the verb get on configmaps, for this one and its shards)`},
		"not known": {prepare: refuse(testCapacity, apierrors.NewUnauthorized("who are you")),
			want: `get ConfigMap gpus/gpu-capacity: who are you (the API server does not know who you are: log in again)`},
		"in need":       {prepare: refuse(testCapacity, apierrors.NewInternalError(errors.New("no leader"))), want: `get ConfigMap gpus/gpu-capacity: Internal error occurred: no leader`},
		"a shard":       {read: shard, want: `ConfigMap gpus/gpu-capacity-shard-0002 is a part of gpu-capacity: read that`},
		"the other one": {read: "gpu-summary", want: `ConfigMap gpus/gpu-summary: summary.json is missing (is gpu-summary the controller's --capacity-name, and not its --name?)`},
		"a shard is missing": {prepare: func(t *testing.T, client *fake.Clientset) {
			if err := client.CoreV1().ConfigMaps(testNamespace).Delete(t.Context(), shard, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, want: `ConfigMap gpus/gpu-capacity: does not fit together with its shards: gpu-capacity-shard-0002 is missing, in each of 10 readings (if no controller runs, one died while it wrote: start it)`},
		"a shard of another state": {prepare: edit(shard, func(cm *corev1.ConfigMap) { cm.Annotations[publish.AnnotationGeneration] = "0" }),
			want: `ConfigMap gpus/gpu-capacity: does not fit together with its shards: gpu-capacity-shard-0002 has generation "0", not "G", in each of 10 readings (if no controller runs, one died while it wrote: start it)`},
		"generations are none": {prepare: edit(testCapacity, func(cm *corev1.ConfigMap) { cm.Annotations[publish.AnnotationGenerations] = "many" }),
			want: `ConfigMap gpus/gpu-capacity: annotation gpu-summary/shard-generations is not what the controller writes: has somebody edited it?`},
		"too many generations": {prepare: edit(testCapacity, func(cm *corev1.ConfigMap) {
			cm.Annotations[publish.AnnotationGenerations] = "[" + strings.Repeat(`"",`, mostShards) + `""]`
		}), want: `ConfigMap gpus/gpu-capacity: annotation gpu-summary/shard-generations is not what the controller writes: has somebody edited it?`},
		"no JSON": {prepare: edit(testCapacity, func(cm *corev1.ConfigMap) { cm.Data[publish.KeySummary] = "{" }),
			want: `ConfigMap gpus/gpu-capacity: summary.json: unexpected end of JSON input (has somebody edited it? The controller puts it right)`},
		"rows are missing": {prepare: edit(shard, func(cm *corev1.ConfigMap) { delete(cm.Data, publish.KeyNodes) }),
			want: `ConfigMap gpus/gpu-capacity-shard-0002: nodes.json is missing (is gpu-capacity the controller's --capacity-name, and not its --name?)`},
		"a later version": {prepare: edit(testCapacity, func(cm *corev1.ConfigMap) {
			cm.Data[publish.KeySummary] = strings.Replace(cm.Data[publish.KeySummary], `"schemaVersion":"1"`, `"schemaVersion":"2"`, 1)
		}), want: `ConfigMap gpus/gpu-capacity: summary.json has schema version "2", and this reads "1": use the version of the controller`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				published(t, client, 6000, several(100))
				second, err := client.CoreV1().ConfigMaps(testNamespace).Get(t.Context(), shard, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Replace(tc.want, `not "G"`, fmt.Sprintf("not %q", second.Annotations[publish.AnnotationGeneration]), 1)
				if tc.prepare != nil {
					tc.prepare(t, client)
				}
				read := testCapacity
				if tc.read != "" {
					read = tc.read
				}
				got, err := Published(t.Context(), client.CoreV1(), testNamespace, read)
				if err == nil || err.Error() != want || got != nil {
					t.Errorf("the error is\n%v\nwant\n%s", err, want)
				}
			})
		})
	}
}
