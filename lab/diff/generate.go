package diff

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Nodes are few, so that every one has several pods. Those called gone-… do not
// exist (R3), those called alone-… have one pod each.
const (
	sharedNodes = 6
	goneNodes   = 2

	sharedPrefix = "node-"
	gonePrefix   = "gone-"
	alonePrefix  = "alone-"
)

var phases = []corev1.PodPhase{
	"", corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning,
	corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown,
}

// maker makes one pod.
type maker struct {
	dice
	// palette is what this pod's lists name: with few names, the same name stands
	// in several lists, and there is something to add up.
	palette []corev1.ResourceName
	// enormous pods have enormous quantities among theirs.
	enormous bool
}

// Pod makes pod number n of a run with a seed.
func Pod(seed uint64, n int) *corev1.Pod {
	subSeed := SubSeed(seed, n)
	m := maker{dice: newDice(subSeed)}
	m.enormous = m.oneIn(8)
	m.palette = []corev1.ResourceName{gpus[0]}
	for range m.upTo(2) {
		m.palette = append(m.palette, pick(m.dice, gpus))
	}
	if m.oneIn(3) {
		m.palette = append(m.palette, pick(m.dice, lookAlikes))
	}
	if m.oneIn(2) {
		m.palette = append(m.palette, pick(m.dice, others))
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "diff", Name: fmt.Sprintf("pod-%d", n), UID: types.UID(fmt.Sprintf("uid-%d", n)),
	}}
	m.spec(&pod.Spec)
	m.status(pod)
	m.place(pod, subSeed)
	return pod
}

func (m *maker) spec(spec *corev1.PodSpec) {
	for i := range m.upTo(4) {
		spec.Containers = append(spec.Containers, m.container("c", i))
	}
	if m.oneIn(2) {
		for i := range m.upTo(4) {
			spec.InitContainers = append(spec.InitContainers, m.container("i", i))
		}
	}
	if m.oneIn(6) {
		spec.Overhead = m.list()
	}
	if m.oneIn(5) {
		spec.Resources = &corev1.ResourceRequirements{}
		m.requirements(spec.Resources)
	}
	if m.oneIn(16) {
		c := m.container("e", 0)
		spec.EphemeralContainers = append(spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name, Resources: c.Resources},
		})
	}
	if m.oneIn(16) {
		spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	}
	if m.oneIn(8) {
		spec.SchedulerName = "another-scheduler"
	}
}

func (m *maker) container(prefix string, i int) corev1.Container {
	c := corev1.Container{Name: fmt.Sprint(prefix, i)}
	if m.oneIn(24) {
		c.Name = "c0" // the status of one container then speaks for two
	}
	m.requirements(&c.Resources)
	// Only an init container becomes a sidecar by this, and only by Always.
	if always := prefix == "i" && m.oneIn(2); always || m.oneIn(8) {
		policy := corev1.ContainerRestartPolicyAlways
		if !always {
			policy = pick(m.dice, []corev1.ContainerRestartPolicy{corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever, policy})
		}
		c.RestartPolicy = &policy
	}
	return c
}

func (m *maker) requirements(r *corev1.ResourceRequirements) {
	r.Requests = m.list()
	switch m.upTo(5) {
	case 0:
		r.Limits = m.list()
	case 1:
		r.Limits, r.Requests = r.Requests, nil // R10
	case 2:
		r.Limits = r.Requests.DeepCopy()
	}
}

// list is never empty but not nil: nothing that comes from an API server is.
func (m *maker) list() corev1.ResourceList {
	var list corev1.ResourceList
	for _, name := range m.palette {
		if m.oneIn(4) {
			continue
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = m.quantity()
	}
	return list
}

func (m *maker) quantity() resource.Quantity {
	switch {
	case m.enormous && m.oneIn(3):
		return pick(m.dice, enormous).DeepCopy()
	case m.oneIn(3):
		return pick(m.dice, oddities).DeepCopy()
	}
	return *resource.NewQuantity(int64(m.upTo(8)), resource.DecimalSI)
}

// place decides where the pod is, and in which part of its life.
func (m *maker) place(pod *corev1.Pod, subSeed uint64) {
	pod.Status.Phase = pick(m.dice, phases)
	if m.oneIn(6) {
		// A fixed time: the pod must be the same whenever it is made.
		at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		pod.DeletionTimestamp = &at
		pod.Finalizers = []string{"example.com/wait"}
	}
	switch kind := m.upTo(9); {
	case kind == 0: // waiting
	case m.enormous:
		pod.Spec.NodeName = alonePrefix + strings.TrimPrefix(hex(subSeed), "0x")
	case kind == 1:
		pod.Spec.NodeName = fmt.Sprint(gonePrefix, m.upTo(goneNodes-1))
	default:
		pod.Spec.NodeName = fmt.Sprint(sharedPrefix, m.upTo(sharedNodes-1))
	}
	if m.oneIn(8) {
		pod.Status.NominatedNodeName = fmt.Sprint(sharedPrefix, m.upTo(sharedNodes-1))
	}
}
