package count_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

const product = "nvidia.com/gpu.product"

func selects(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

// needs adds terms of required node affinity, one of which has to hold.
func needs(terms ...[]corev1.NodeSelectorRequirement) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		var required corev1.NodeSelector
		for _, term := range terms {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: term})
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &required}}
	}
}

func is(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func term(requirements ...corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
	return requirements
}

// TestModelsThatPodsName: P2.
func TestModelsThatPodsName(t *testing.T) {
	notT4 := corev1.NodeSelectorRequirement{Key: product, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"T4"}}
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("m%02d", i)
	}
	for _, tc := range []struct {
		name    string
		changes func(*corev1.Pod)
		want    []string
	}{
		{"nothing", func(*corev1.Pod) {}, nil},
		{"a node selector", selects(product, "A100"), []string{"A100"}},
		{"a selector of something else", selects("zone", "A100"), nil},
		{"another vendor's label", selects("amd.com/gpu.product-name", "MI300X"), nil},
		{"a requirement", needs(term(is(product, "H100", "A100", "A100"))), []string{"A100", "H100"}},
		{"requirements that both have to hold", needs(term(is(product, "A100", "H100"), is("zone", "a"), is(product, "H100", "T4"))), []string{"H100"}},
		{"terms, of which one has to hold", needs(term(is(product, "T4")), term(is(product, "A100"))), []string{"A100", "T4"}},
		{"a term that any model is good for", needs(term(is(product, "T4")), term(is("zone", "a"))), nil},
		{"a term that holds nowhere", needs(term(is(product, "T4")), term()), []string{"T4"}},
		{"what is not to be", needs(term(notT4)), nil},
		{"what excludes itself", needs(term(is(product, "T4"), is(product, "A100"))), nil},
		{"selector and requirement", func(p *corev1.Pod) { selects(product, "A100")(p); needs(term(is(product, "A100", "T4")))(p) }, []string{"A100"}},
		{"preferences", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: term(is(product, "T4"))}},
			}}}
		}, nil},
		{"affinity to pods", func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}} }, nil},
		{"as many as are kept", needs(term(is(product, many[:64]...))), many[:64]},
		{"more than are kept", needs(term(is(product, many...))), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := read(pod(waiting, tc.changes))[0]
			if diff := cmp.Diff(tc.want, p.Models(count.NVIDIA)); diff != "" {
				t.Errorf("models (-want +got):\n%s", diff)
			}
			if got := read(pod(tc.changes))[0].Models(count.NVIDIA); got != nil {
				t.Errorf("it is bound, and names %q", got)
			}
		})
	}
	if got := read(pod(waiting, selects("amd.com/gpu.product-name", "MI300X")))[0].Models("amd.com/gpu"); !slices.Equal(got, []string{"MI300X"}) {
		t.Errorf("of amd.com/gpu it names %q", got)
	}
	from, to := read(pod(waiting, selects(product, "A100")))[0], read(pod(waiting, selects(product, "T4")))[0]
	if from.Equal(to) {
		t.Error("a pod that names another model counts in another number, so the two differ")
	}
}

// TestPendingByModel: every waiting device is in one of the numbers, and in one alone.
func TestPendingByModel(t *testing.T) {
	w := world(read(
		pod(waiting),
		pod(waiting, selects(product, "A100"), containers(container("8"))),
		pod(waiting, selects(product, "A100"), gated),
		pod(waiting, needs(term(is(product, "A100", "H100"))), containers(container("4"))),
		pod(waiting, needs(term(is(product, "A100", "B200"))), containers(container("1"))),
		pod(waiting, selects(product, "B200"), containers(container("5"))),
		pod(waiting, selects(product, "A100"), deleted),
		pod(selects(product, "A100")),
	))
	w.Nodes = append(w.Nodes, node("n3", "4", "4", func(n *corev1.Node) { n.Labels[product] = "H100" }))
	sum := count.Take(w).Of(count.NVIDIA)
	got := map[string]int64{"all": sum.Pending.Devices, "any": sum.Pending.AnyModel, "several": sum.Pending.SeveralModels, "absent": sum.Pending.AbsentModel}
	for _, m := range sum.Models {
		got[m.Name] = m.Pending
	}
	if diff := cmp.Diff(map[string]int64{"all": 22, "any": 2, "A100": 11, "H100": 0, "several": 4, "absent": 5}, got); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	w.NodesKnown, w.Nodes = false, nil
	if sum = count.Take(w).Of(count.NVIDIA); sum.Pending.AnyModel+sum.Pending.SeveralModels+sum.Pending.AbsentModel+sum.Models[0].Pending != 0 {
		t.Errorf("nobody knows which models there are, and yet %+v", sum.Pending)
	}
}

// TestModelsAreThoseTheSchedulerAllows: whatever a pod asks of its node, none of another
// model will do; and where it asks for models alone, each that it names does.
func TestModelsAreThoseTheSchedulerAllows(t *testing.T) {
	models := []string{"A100", "B200", "H100", "L40S", "T4"}
	keys := []string{product, product, "zone"}
	operators := []corev1.NodeSelectorOperator{
		corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
	}
	named, refused := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 5))
		onlyModels := r.IntN(2) == 0
		p := pod(waiting)
		if r.IntN(3) == 0 {
			selects(product, models[r.IntN(len(models))])(p)
		}
		var terms [][]corev1.NodeSelectorRequirement
		for range r.IntN(4) {
			var requirements []corev1.NodeSelectorRequirement
			for range r.IntN(4) {
				q := is(product, models[r.IntN(len(models))], models[r.IntN(len(models))])
				if !onlyModels {
					q.Key, q.Operator = keys[r.IntN(len(keys))], operators[r.IntN(len(operators))]
				}
				if q.Operator == corev1.NodeSelectorOpExists || q.Operator == corev1.NodeSelectorOpDoesNotExist {
					q.Values = nil
				}
				requirements = append(requirements, q)
			}
			terms = append(terms, requirements)
		}
		if terms != nil {
			needs(terms...)(p)
		}
		got := read(p)[0].Models(count.NVIDIA)
		allowed := nodeaffinity.GetRequiredNodeAffinity(p)
		for _, model := range models {
			if len(got) == 0 {
				break
			}
			named++
			fits, err := allowed.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{product: model, "zone": models[0]}}})
			switch contains := slices.Contains(got, model); {
			case err != nil:
				t.Fatalf("seed %d: %v", seed, err)
			case fits && !contains:
				t.Errorf("seed %d: %s will do, and the pod names %s", seed, model, strings.Join(got, ", "))
			case !fits && !contains:
				refused++
			// Where selector and affinity exclude each other nothing will do.
			case !fits && onlyModels && len(p.Spec.NodeSelector) == 0:
				t.Errorf("seed %d: %s will not do, and the pod names %s", seed, model, strings.Join(got, ", "))
			}
		}
	}
	if named < 1000 || refused < 1000 {
		t.Errorf("only %d models were named, and %d refused", named, refused)
	}
}
