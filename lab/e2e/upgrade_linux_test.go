package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// earlierChart is the chart as it was before it had a role for readers of the page, and
// when it asked for less memory. It was made with
//
//	git archive e569f45 deploy/chart | tar --extract
//	helm package deploy/chart
//
// which is the last commit before that. There is no release yet that could stand here.
const earlierChart = "testdata/chart-before-page-reader.tgz"

// TestHelmUpgrade from that chart, with one replica of an older image and an object that
// is no longer asked for.
func TestHelmUpgrade(t *testing.T) {
	e := newEnv(t)
	e.running(holder("a", 2))
	s := e.otherSite("upgraded")
	earlier := s
	earlier.chart = earlierChart
	_, err := earlier.helm(t.Context(), "install", strings.Replace(s.values("replicaCount: 1\npriorityClass: {create: true}\n"), tag, olderTag, 1))
	e.must(err)
	e.eventually("the earlier release", func() error { return s.working(t.Context(), 1) })
	first, err := s.configMap(t.Context())
	e.must(err)
	role, class := "ClusterRole /upgraded-controller-page-reader", "PriorityClass /upgraded-controller"
	if was := e.partsOf(s); was[role] || !was[class] {
		t.Errorf("of the earlier release there are %v, want the class and not yet the role", was)
	}
	_, err = s.helm(t.Context(), "upgrade", s.values(""))
	e.must(err)
	e.eventually("the release", func() error { return s.working(t.Context(), 2) })
	for _, p := range s.pods(t.Context()) {
		if image := p.Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+tag) {
			t.Errorf("%s runs %s", p.Name, image)
		}
	}
	e.isAsRendered(s, s.values(""))
	e.running(holder("b", 1))
	e.eventually("the new leader to publish", func() error {
		cm, err := s.configMap(t.Context())
		if err != nil {
			return err
		}
		if cm.UID != first.UID {
			t.Fatal("the ConfigMap was made anew")
		}
		if publish.Term(cm) <= publish.Term(first) || cm.Data[e.node.Name()] != "3" {
			return fmt.Errorf("term %d, row %q", publish.Term(cm), cm.Data[e.node.Name()])
		}
		return nil
	})
	e.settled(3)
	if _, writers := e.oneWriterAtATime(e.writesOf(s)); writers < 2 {
		t.Errorf("%d replicas wrote, want at least one of each release", writers)
	}
}

// partsOf is the objects of an installation, in all namespaces, by kind, namespace and
// name, but for those that others have made on their behalf.
func (e *env) partsOf(s site) map[string]bool {
	e.Helper()
	found := map[string]bool{}
	e.visit(metav1.NamespaceAll, "app.kubernetes.io/part-of=gpu-summary,app.kubernetes.io/instance="+s.publish, func(kind, _ string, o *metav1.PartialObjectMetadata) {
		derived := len(o.OwnerReferences) > 0 || kind == "Endpoints" // which name no owner
		if !derived {
			found[fmt.Sprintf("%s %s/%s", kind, o.Namespace, o.Name)] = true
		}
	})
	return found
}

// isAsRendered: there is what today's chart says, as it says it, and nothing else of the
// installation.
func (e *env) isAsRendered(s site, values string) {
	e.Helper()
	manifest, err := lab.tools.Render(e.Context(), s.namespace, values)
	e.must(err)
	want := map[string]bool{}
	for document := range strings.SplitSeq(manifest, "\n---") {
		var o metav1.PartialObjectMetadata
		e.must(yaml.Unmarshal([]byte(document), &o))
		if o.Kind != "" {
			want[fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)] = true
		}
	}
	if diff := cmp.Diff(want, e.partsOf(s)); diff != "" {
		e.Errorf("after the upgrade there are (-of today's chart +in the cluster):\n%s", diff)
	}
	_, err = s.run(e.Context(), lab.tools.Kubectl, manifest, "--kubeconfig", lab.plane.Kubeconfig(),
		"diff", "--server-side", "--force-conflicts", "--field-manager=helm", "--filename", "-")
	if err != nil {
		e.Errorf("what is in the cluster differs from today's chart: %v", err)
	}
}
