package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/gather"
	"github.com/gpu-summary/gpu-summary-controller/internal/plugin"
)

const productLabel = "nvidia.com/gpu.product"

// TestPendingByModel is the same number on every face, also after a pod that a gate
// holds has been sent to another model.
func TestPendingByModel(t *testing.T) {
	e := newEnv(t)
	for name, product := range map[string]string{"gpu-1": "A100", "gpu-2": "H100"} {
		e.node(name, 8)
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, productLabel, product)
		_, err := e.client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		e.must(err)
	}
	c := e.start()
	e.waits("any", 1)
	e.waits("one", 8, "A100")
	e.waits("either", 4, "A100", "H100")
	e.waits("half-there", 2, "H100", "B200")
	e.waits("absent", 5, "B200")
	gated := e.pod("gated", 3)
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	e.create(gated)
	e.byModel(c, map[string]int64{"A100": 8, "H100": 2, "any": 4, "several": 4, "absent": 5})

	gated, err := e.client.CoreV1().Pods(e.namespace).Get(t.Context(), gated.Name, metav1.GetOptions{})
	e.must(err)
	gated.Spec.NodeSelector = map[string]string{productLabel: "H100"}
	_, err = e.client.CoreV1().Pods(e.namespace).Update(t.Context(), gated, metav1.UpdateOptions{})
	e.must(err)
	e.byModel(c, map[string]int64{"A100": 8, "H100": 5, "any": 1, "several": 4, "absent": 5})
}

// waits creates a pod that nobody schedules, for one of some models.
func (e *env) waits(name string, gpus int, models ...string) {
	e.Helper()
	pod := e.pod(name, gpus)
	if len(models) > 0 {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: productLabel, Operator: corev1.NodeSelectorOpIn, Values: models},
			}}},
		}}}
	}
	e.create(pod)
}

// byModel waits until what the controller publishes and serves says this, and compares
// the faces that count for themselves.
func (e *env) byModel(c *controller, want map[string]int64) {
	e.Helper()
	compare := func(face string, got map[string]int64) error {
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s (-want +shown):\n%s", face, diff)
		}
		return nil
	}
	e.eventually("the demand of each model to be published and served", func() error {
		published, err := gather.Published(e.Context(), e.client.CoreV1(), e.namespace, "gpu-capacity")
		if err != nil {
			return err
		}
		var served struct{ count.Snapshot }
		if err := json.Unmarshal(c.get("/api/v1/snapshot"), &served); err != nil {
			return err
		}
		return errors.Join(compare("gpu-capacity", split(published)), compare("/api/v1/snapshot", split(&served.Snapshot)),
			compare("/metrics", e.splitOfMetrics(c.get("/metrics"))))
	})
	config := []string{"--kubeconfig", e.kubeconfig(e.plane.Config())}
	for _, args := range [][]string{config, {"--from", e.dump()}, append(config, "--from-configmap", "-n", e.namespace)} {
		if err := compare("kubectl gpu-summary "+strings.Join(args, " "), e.splitOfPlugin(args...)); err != nil {
			e.Error(err)
		}
	}
}

func split(snap *count.Snapshot) map[string]int64 {
	sum := snap.Of(count.NVIDIA)
	return splitOf(sum.Models, &sum.Pending)
}

func splitOf(models []count.Model, pending *count.Pending) map[string]int64 {
	out := map[string]int64{"any": pending.AnyModel, "several": pending.SeveralModels, "absent": pending.AbsentModel}
	for _, m := range models {
		out[m.Name] = m.Pending
	}
	return out
}

func (e *env) splitOfMetrics(text []byte) map[string]int64 {
	e.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	e.must(err)
	out := map[string]int64{}
	for family, label := range map[string]string{"gpu_summary_model_pending_devices": "model", "gpu_summary_pending_other_devices": "models"} {
		for _, series := range families[family].GetMetric() {
			for _, l := range series.GetLabel() {
				if l.GetName() == label {
					out[l.GetValue()] += int64(series.GetGauge().GetValue())
				}
			}
		}
	}
	return out
}

// splitOfPlugin puts together what "models" and "pending" say.
func (e *env) splitOfPlugin(args ...string) map[string]int64 {
	e.Helper()
	var models struct{ Rows []count.Model }
	var pending struct{ Totals []count.Pending }
	for subcommand, into := range map[string]any{"models": &models, "pending": &pending} {
		var stdout, stderr bytes.Buffer
		command := plugin.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
		command.SetArgs(append([]string{subcommand, "-o", "json"}, args...))
		if err := command.ExecuteContext(e.Context()); err != nil {
			e.Fatalf("kubectl gpu-summary %s %v: %v\n%s", subcommand, args, err, stderr.String())
		}
		e.must(json.Unmarshal(stdout.Bytes(), into))
	}
	if len(pending.Totals) != 1 {
		e.Fatalf("%d totals of what is pending", len(pending.Totals))
	}
	return splitOf(models.Rows, &pending.Totals[0])
}
