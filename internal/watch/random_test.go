package watch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

// maker makes objects in which every field there is may be set. Lists of resources,
// wherever they are, have names out of a few, so that a GPU turns up in every place
// where one can be written: requests and limits of containers of all four kinds, of
// the pod, overhead, what is allocated, and fields that will be added one day.
type maker struct {
	*rand.Rand
	fill *randfill.Filler
	// gpus is whether a GPU may be named at all.
	gpus bool
}

var (
	gpuNames   = []corev1.ResourceName{"nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu", "example.com/npu", "deviceclass.resource.kubernetes.io/gpu.nvidia.com"}
	otherNames = []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpumem", "example.com/np", "hugepages-2Mi", "deviceclass.resource.kubernetes.io"}
	counted    = append(defaultNames(), "example.com/npu")
)

func newMaker(seed uint64) *maker {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 7))}
	m.fill = randfill.NewWithSeed(int64(seed)).NilChance(0.4).NumElements(0, 2).MaxDepth(12).Funcs(
		func(q *resource.Quantity, _ randfill.Continue) {
			*q = *resource.NewQuantity(m.Int64N(9), resource.DecimalSI)
		},
		func(t *metav1.Time, _ randfill.Continue) { *t = metav1.Unix(m.Int64N(1<<32), 0) },
		func(t *metav1.MicroTime, _ randfill.Continue) {
			*t = metav1.NewMicroTime(time.Unix(m.Int64N(1<<32), 0))
		},
		func(i *intstr.IntOrString, _ randfill.Continue) { *i = intstr.FromInt32(m.Int32()) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:nodeName":{}}`) },
		func(l *corev1.ResourceList, _ randfill.Continue) { *l = m.list() },
		func(p *corev1.PodPhase, _ randfill.Continue) {
			*p = pick(m, corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, "")
		},
		func(p *corev1.ContainerRestartPolicy, _ randfill.Continue) {
			*p = pick(m, corev1.ContainerRestartPolicyAlways, "Never")
		},
		func(c *corev1.PodCondition, _ randfill.Continue) {
			c.Type = pick(m, corev1.PodScheduled, corev1.PodResizePending, corev1.PodReady)
			c.Status = pick(m, corev1.ConditionTrue, corev1.ConditionFalse)
			c.Reason = pick(m, corev1.PodReasonUnschedulable, corev1.PodReasonInfeasible, "")
		},
		func(c *corev1.NodeCondition, _ randfill.Continue) {
			c.Type, c.Status = pick(m, corev1.NodeReady, corev1.NodeDiskPressure), pick(m, corev1.ConditionTrue, corev1.ConditionFalse)
		},
		func(t *corev1.Taint, _ randfill.Continue) {
			t.Key = pick(m, "team", "nvidia.com/gpu", corev1.TaintNodeNotReady)
			t.Effect = pick(m, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule)
		},
		func(r *corev1.NodeSelectorRequirement, _ randfill.Continue) {
			r.Key = pick(m, "nvidia.com/gpu.product", "nvidia.com/gpu.product", "zone")
			r.Operator, r.Values = pick(m, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), []string{pick(m, "A100", "H100"), "T4"}
		},
		func(r *corev1.ContainerExtendedResourceRequest, c randfill.Continue) {
			c.FillNoCustom(r)
			for name := range m.list() {
				r.ResourceName = string(name)
			}
		},
	)
	return m
}

func pick[T any](m *maker, from ...T) T { return from[m.IntN(len(from))] }

func (m *maker) list() corev1.ResourceList {
	names := otherNames
	if m.gpus {
		names = append(names, gpuNames...)
	}
	list := corev1.ResourceList{}
	for range m.IntN(3) {
		list[pick(m, names...)] = *resource.NewQuantity(m.Int64N(9), resource.DecimalSI)
	}
	return list
}

func (m *maker) pod(i int) *corev1.Pod {
	p := &corev1.Pod{}
	m.gpus = m.IntN(4) > 0
	m.fill.Fill(p)
	p.TypeMeta = metav1.TypeMeta{}
	p.Namespace, p.Name, p.ResourceVersion = pick(m, "a", "b"), fmt.Sprint("pod-", i), fmt.Sprint(i+1)
	if m.IntN(4) == 0 {
		p.Spec.NodeSelector = map[string]string{pick(m, "amd.com/gpu.product-name", "zone"): "MI300X"}
	}
	if m.IntN(2) == 0 { // else it is bound, for it has every text that there may be
		p.Spec.NodeName = ""
		p.DeletionTimestamp = pick(m, nil, nil, p.DeletionTimestamp)
		p.Status.NominatedNodeName = pick(m, "", "", "n")
		p.Spec.SchedulingGates = pick(m, nil, nil, p.Spec.SchedulingGates)
		for range 8 * m.IntN(2) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{})
			m.fill.Fill(&p.Status.Conditions[len(p.Status.Conditions)-1])
		}
		for required := (&corev1.NodeSelector{}); len(required.NodeSelectorTerms) == 0 && m.IntN(4) > 0; {
			m.fill.Fill(required)
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
		}
	}
	// Statuses are found by the name of the container.
	for _, of := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for j := range of {
			of[j].Name = pick(m, "c0", "c1")
		}
	}
	for j := range p.Spec.Containers {
		p.Spec.Containers[j].Name = fmt.Sprint("c", j)
	}
	for j := range p.Spec.InitContainers {
		p.Spec.InitContainers[j].Name = fmt.Sprint("c", j)
	}
	return p
}

func (m *maker) node(i int) *corev1.Node {
	n := &corev1.Node{}
	m.gpus = m.IntN(4) > 0
	m.fill.Fill(n)
	n.TypeMeta = metav1.TypeMeta{}
	n.Name, n.ResourceVersion, n.Labels = fmt.Sprint("node-", i), fmt.Sprint(i+1), map[string]string{"a": "b"}
	for range m.IntN(3) {
		n.Labels[pick(m, "nvidia.com/gpu.product", "nvidia.com/gpu.replicas", "gpu.intel.com/product", "node.kubernetes.io/instance-type", "x.replicas")] = pick(m, "4", "H100")
	}
	return n
}

// encode makes of an object what an API server sends.
func encode(t *testing.T, obj runtime.Object, asJSON bool) []byte {
	t.Helper()
	gvks, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvks[0])
	defer obj.GetObjectKind().SetGroupVersionKind(schemaNone)
	var encoder runtime.Encoder = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	if asJSON {
		encoder = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
	}
	var b bytes.Buffer
	if err := encoder.Encode(obj, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// received is the object as a client has it: an empty list is none after the way.
func received(t *testing.T, obj runtime.Object, asJSON bool) runtime.Object {
	t.Helper()
	got, err := decodeFully(encode(t, obj, asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// fromTheFuture adds to an object, and to the messages in it, a field that nobody
// knows yet. The text in it names a GPU, which makes no difference.
func fromTheFuture(t *testing.T, object []byte) []byte {
	t.Helper()
	kind, message, err := readObject(object)
	if err != nil {
		t.Fatal(err)
	}
	var typeMeta, envelope []byte
	typeMeta = protowire.AppendBytes(protowire.AppendTag(typeMeta, 2, protowire.BytesType), kind)
	typeMeta = protowire.AppendString(protowire.AppendTag(typeMeta, 1, protowire.BytesType), "v1")
	envelope = protowire.AppendBytes(protowire.AppendTag(envelope, 1, protowire.BytesType), typeMeta)
	envelope = protowire.AppendBytes(protowire.AppendTag(envelope, 2, protowire.BytesType), withUnknown(message, 2))
	return append(append([]byte{}, magic...), envelope...)
}

func withUnknown(message []byte, depth int) (out []byte) {
	add := func() {
		out = protowire.AppendVarint(protowire.AppendTag(out, 900, protowire.VarintType), 1<<40)
		out = protowire.AppendString(protowire.AppendTag(out, 901, protowire.BytesType), "of nvidia.com/gpu")
		out = protowire.AppendFixed64(protowire.AppendTag(out, 63, protowire.Fixed64Type), 1)
	}
	add()
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		m := protowire.ConsumeFieldValue(number, kind, message[n:])
		if value, _ := protowire.ConsumeBytes(message[n:]); kind == protowire.BytesType && depth > 0 && number <= 3 {
			// metadata, spec and status, and what is in those under the same numbers
			// and is a message: texts are left as they are.
			if looksLikeMessage(value) && depth == 2 {
				out = protowire.AppendBytes(protowire.AppendTag(out, number, kind), withUnknown(value, depth-2))
				message = message[n+m:]
				continue
			}
		}
		out = append(out, message[:n+m]...)
		message = message[n+m:]
	}
	add()
	return out
}

func looksLikeMessage(value []byte) bool {
	return each(value, func(protowire.Number, []byte) error { return nil }) == nil
}

// same compares records, each with all it has.
func same(a, b runtime.Object) bool { return reflect.DeepEqual(a, b) }
