package fit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/fit"
)

const containers = `{containers: [{name: c, image: x, resources: {limits: {nvidia.com/gpu: 2, cpu: 1}, requests: {cpu: 500m}}}]}`

func TestKindsOfManifests(t *testing.T) {
	template := "template: {metadata: {labels: {app: a}}, spec: " + containers + "}"
	for name, tc := range map[string]struct {
		manifest string
		want     string // name ×copies [namespace], for each
	}{
		"Pod":                   {"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}, spec: " + containers + "}", "pod/a ×1 [ns]"},
		"Deployment":            {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 3, " + template + "}}", "deployment/a ×3 [default]"},
		"replicas left out":     {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {" + template + "}}", "deployment/a ×1 [default]"},
		"StatefulSet":           {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 2, " + template + "}}", "statefulset/a ×2 [default]"},
		"ReplicaSet":            {"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: 0, " + template + "}}", "replicaset/a ×0 [default]"},
		"ReplicationController": {"{apiVersion: v1, kind: ReplicationController, metadata: {name: a}, spec: {replicas: 2, " + template + "}}", "replicationcontroller/a ×2 [default]"},
		"Job":                   {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 4, " + template + "}}", "job/a ×4 [default]"},
		"Job that ends early":   {"{apiVersion: batch/v1, kind: Job, metadata: {generateName: a-}, spec: {parallelism: 4, completions: 3, " + template + "}}", "job/a- ×3 [default]"},
		"CronJob":               {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: '@daily', jobTemplate: {spec: {parallelism: 2, " + template + "}}}}", "cronjob/a ×2 [default]"},
		"documents": {"# first\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: " + containers + "\n---\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec: " + containers + "\n",
			"pod/a ×1 [default], pod/b ×1 [default]"},
		"a list": {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: " + containers + "}\n- {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: " + containers + "}\n",
			"pod/a ×1 [default], pod/b ×1 [default]"},
		"JSON": {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{"containers":[{"name":"c"}]}}`,
			"pod/a ×1 [default], pod/b ×1 [default]"},
	} {
		t.Run(name, func(t *testing.T) {
			questions, err := fit.ReadQuestions("f", strings.NewReader(tc.manifest), "default")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, q := range questions {
				got = append(got, q.Name+" ×"+string(rune('0'+q.Copies))+" ["+q.Pod.Namespace+"]")
			}
			if s := strings.Join(got, ", "); s != tc.want {
				t.Errorf("got %s, want %s", s, tc.want)
			}
		})
	}
}

func TestBadManifests(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, want string }{
		"nothing":          {"", "f has no object: want a Pod, Deployment,"},
		"comments":         {"# nothing\n---\n", "f has no object"},
		"not YAML":         {"a: [", "f, document 1: "},
		"text":             {"hello", "f, document 1: "},
		"no kind":          {"{spec: {}}", "f, document 1: apiVersion and kind are missing"},
		"DaemonSet":        {"{apiVersion: apps/v1, kind: DaemonSet}", "document 1: a DaemonSet has one pod on each node"},
		"unknown":          {"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet}", "document 1: JobSet of jobset.x-k8s.io/v1alpha2 is not known: want a Pod"},
		"an old version":   {"{apiVersion: extensions/v1beta1, kind: Deployment}", "Deployment of extensions/v1beta1 is not known"},
		"misspelt":         {"{apiVersion: v1, kind: Pod, spec: {nodeSelctor: {}}}", `document 1: unknown field "spec.nodeSelctor"`},
		"of a wrong type":  {"{apiVersion: v1, kind: Pod, spec: {containers: {}}}", "document 1: json: cannot unmarshal object into Go struct field PodSpec.spec.containers"},
		"a wrong quantity": {"{apiVersion: v1, kind: Pod, spec: {containers: [{resources: {limits: {cpu: many}}}]}}", "quantities must match"},
		"no containers":    {"{apiVersion: v1, kind: Pod, metadata: {name: a}}", "document 1: pod/a has no containers"},
		"no template":      {"{apiVersion: v1, kind: ReplicationController, metadata: {name: a}}", "document 1: spec.template is missing"},
		"negative":         {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: -1, template: {spec: " + containers + "}}}", "deployment/a asks for -1 copies"},
		"the second item":  {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, spec: " + containers + "}, {apiVersion: v1, kind: Secret}]}", "document 1: items[1]: Secret of v1 is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fit.ReadQuestions("f", strings.NewReader(tc.manifest), "default")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

// TestDefaults: what the API server and the controllers would add is there.
func TestDefaults(t *testing.T) {
	manifest := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  template:
    metadata: {labels: {app: a}}
    spec:
      hostNetwork: true
      resources: {limits: {memory: 4Gi, cpu: 3}}
      initContainers: [{name: i, resources: {limits: {nvidia.com/gpu: 1}}}]
      containers: [{name: c, ports: [{containerPort: 80}], resources: {limits: {nvidia.com/gpu: 2, cpu: 2}, requests: {cpu: 500m}}}]
      tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: zone, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [pod-template-hash], mismatchLabelKeys: [app]}
      topologySpreadConstraints:
      - {topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {}, matchLabelKeys: [app, none]}
`
	questions, err := fit.ReadQuestions("f", strings.NewReader(manifest), "default")
	if err != nil {
		t.Fatal(err)
	}
	p := questions[0].Pod
	spec := &p.Spec
	gpus := func(c corev1.Container) int64 { q := c.Resources.Requests["nvidia.com/gpu"]; return q.Value() }
	memory, cpu := spec.Resources.Requests[corev1.ResourceMemory], spec.Resources.Requests[corev1.ResourceCPU]
	term := spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	selects := metav1.FormatLabelSelector(term.LabelSelector)
	for what, ok := range map[string]bool{
		"limits are requested":             gpus(spec.Containers[0]) == 2 && gpus(spec.InitContainers[0]) == 1,
		"a request stays":                  spec.Containers[0].Resources.Requests.Cpu().String() == "500m",
		"the pod requests its limits":      memory.String() == "4Gi",
		"and what its containers request":  cpu.String() == "500m",
		"ports are the node's":             spec.Containers[0].Ports[0].HostPort == 80,
		"an outage is tolerated":           len(spec.Tolerations) == 2 && spec.Tolerations[1].Key == corev1.TaintNodeUnreachable && spec.Tolerations[1].Effect == corev1.TaintEffectNoExecute,
		"the hash of the template is new":  p.Labels["pod-template-hash"] != "",
		"matchLabelKeys select":            strings.Contains(selects, "pod-template-hash in ("),
		"mismatchLabelKeys select":         strings.Contains(selects, "app notin (a)"),
		"a spread selects by the same key": len(spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions) == 1,
	} {
		if !ok {
			t.Errorf("not so: %s", what)
		}
	}
}

// TestNotes: what is not judged is said.
func TestNotes(t *testing.T) {
	o := objects{nodes: []*corev1.Node{node("n", "gpu=8")}, pods: []*corev1.Pod{pod("waits", "gpu=4")}}
	manifest := `
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  suspend: true
  template:
    spec:
      schedulerName: kueue
      priorityClassName: high
      runtimeClassName: kata
      schedulingGates: [{name: g}]
      containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}, {name: tmp, emptyDir: {}}]
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: zone, labelSelector: {}, namespaceSelector: {matchLabels: {team: a}}}
`
	questions, err := fit.ReadQuestions("f", strings.NewReader(manifest), "default")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the job is suspended: it has no pods before that ends",
		"volumes are not judged, and may tie the pod to a zone or a node: data",
		"the pod has scheduling gates: nothing places it before they are removed",
		"scheduler kueue places it, which may go by other rules",
		"the pod has a priority: what could be evicted for it is not considered",
		"overhead and node selector of runtime class kata are not known",
		"labels of namespaces are not read: a namespaceSelector is judged by the name of the namespace alone",
		"1 pod waits for 4 nvidia.com/gpu and may take the room first",
	}
	if diff := cmp.Diff(want, o.ask(t, questions[0])[0].Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}

	bound := `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: gone, containers: [{name: c}]}, status: {phase: Running}}`
	if questions, err = fit.ReadQuestions("f", strings.NewReader(bound), "default"); err != nil {
		t.Fatal(err)
	}
	a := o.ask(t, questions[0])[0]
	if want := []string{"the pod is on node gone already: the question is whether another one like it fits"}; a.Verdict != fit.Fits || !cmp.Equal(want, a.Notes) {
		t.Errorf("%s, %q", a.Verdict, a.Notes)
	}
}

func TestQuestionsThatCannotBeAnswered(t *testing.T) {
	o := objects{nodes: []*corev1.Node{node("n", "gpu=8")}}
	operator := pod("p", "gpu=1", requiring("zone", "Near", "a"))
	term := pod("p", "gpu=1", beside("db", "zone"))
	term.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels = map[string]string{"app": "not a value!"}
	model := copies(1, pod("p", "cpu=1"))
	model.Models = []string{"H100"}
	for want, q := range map[string]fit.Question{
		"pod/p: required node affinity: nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value": copies(1, operator),
		"pod/p: required pod affinity: ": copies(1, term),
		"pod/p: its pods ask for no GPU": model,
	} {
		if _, err := fit.Ask(o.facts(q), o.count(), q); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	snap := o.count()
	snap.NodesKnown = false
	if _, err := fit.Ask(nil, snap, fit.GPUs("nvidia.com/gpu", 1, 1)); err == nil {
		t.Error("an answer without nodes")
	}
	if a, err := fit.Ask(nil, o.count(), fit.GPUs("nvidia.com/gpu", 1, 1)); err != nil || a[0].Verdict != fit.Fits {
		t.Errorf("with a snapshot alone: %v, %v", a, err)
	}
}

func TestMatchModels(t *testing.T) {
	o := objects{nodes: []*corev1.Node{
		node("a", "gpu=1", labelled("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3")), node("b", "gpu=1", labelled("nvidia.com/gpu.product", "NVIDIA-H100-NVL")),
		node("c", "gpu=1", labelled("nvidia.com/gpu.product", "T4")), node("d", "gpu=1", labelled("nvidia.com/gpu.product", "T400")),
	}}
	for name, want := range map[string][]string{
		"": nil, "h100": {"NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-NVL"}, "NVIDIA-H100-NVL": {"NVIDIA-H100-NVL"}, "T4": {"T4"}, "t40": {"T400"},
	} {
		if got, err := fit.MatchModels(o.count(), "nvidia.com/gpu", name); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%q: %v, %v, want %v", name, got, err, want)
		}
	}
	for name, want := range map[[2]string]string{
		{"nvidia.com/gpu", "V100"}: "no model of nvidia.com/gpu is called V100: there are NVIDIA-H100-80GB-HBM3, NVIDIA-H100-NVL, T4, T400",
		{"amd.com/gpu", "MI300X"}:  "no model is called MI300X: there is no amd.com/gpu",
	} {
		if _, err := fit.MatchModels(o.count(), name[0], name[1]); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
