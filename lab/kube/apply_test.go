package kube_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/kube"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

var lab *plane.Plane

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		os.Exit(m.Run())
	}
	storesOnly := plane.Options{Without: []string{plane.ControllerManager, plane.Scheduler, plane.KWOK}}
	os.Exit(plane.Main(m, storesOnly, func(p *plane.Plane) { lab = p }))
}

func client(t *testing.T) kubernetes.Interface {
	t.Helper()
	if lab == nil {
		t.Skip("needs a control plane: not with -short")
	}
	c, err := kubernetes.NewForConfig(lab.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// manifest has what manifests have: several documents of several scopes, one of
// them a comment, and a number that must not become a float.
const manifest = `# nothing here
---
apiVersion: v1
kind: Namespace
metadata: {name: applied}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: colours, namespace: applied}
data: {sky: blue, grass: green}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: applied, generation: 9007199254740993}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [list]}
---
`

func TestApply(t *testing.T) {
	c := client(t)
	apply := func(text string) {
		t.Helper()
		if err := kube.Apply(t.Context(), lab.Config(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	colours := func() *corev1.ConfigMap {
		t.Helper()
		cm, err := c.CoreV1().ConfigMaps("applied").Get(t.Context(), "colours", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cm
	}

	apply(manifest)
	first := colours()
	if first.Data["sky"] != "blue" || first.ManagedFields[0].Manager != "lab" {
		t.Errorf("applied %+v", first)
	}
	if _, err := c.RbacV1().ClusterRoles().Get(t.Context(), "applied", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	apply(manifest)
	if again := colours(); again.ResourceVersion != first.ResourceVersion {
		t.Error("applying the same again wrote the object")
	}

	edited := colours()
	edited.Data["sky"] = "grey"
	if _, err := c.CoreV1().ConfigMaps("applied").Update(t.Context(), edited, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	apply(strings.Replace(manifest, ", grass: green", "", 1))
	if got := colours().Data; len(got) != 1 || got["sky"] != "blue" {
		t.Errorf("after a foreign edit, and without grass in the manifest: %v", got)
	}
}

func TestApplyRefuses(t *testing.T) {
	c := client(t)
	const good = "apiVersion: v1\nkind: Namespace\nmetadata: {name: half}\n---\n"
	for name, tc := range map[string]struct{ text, want string }{
		"no YAML":      {good + "a: [", "read document 2 of the manifest"},
		"no kind":      {good + "apiVersion: v1\nmetadata: {name: a}", "read document 2 of the manifest"},
		"no name":      {good + "apiVersion: v1\nkind: Secret", "read document 2 of the manifest: Secret without a name"},
		"no namespace": {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}", "apply Secret a: the manifest does not name its namespace"},
		"unknown kind": {"apiVersion: a.b/v1\nkind: Unicorn\nmetadata: {name: a}", `apply Unicorn a: no matches for kind "Unicorn" in version "a.b/v1"`},
		"invalid":      {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A_, namespace: default}", "apply ConfigMap A_: "},
	} {
		t.Run(name, func(t *testing.T) {
			if err := kube.Apply(t.Context(), lab.Config(), []byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %q in it", err, tc.want)
			}
		})
	}
	if _, err := c.CoreV1().Namespaces().Get(t.Context(), "half", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a manifest that cannot be read was half applied: %v", err)
	}
}
