package diff

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

const (
	// draDriver exists in ResourceSlices only: nobody prepares a device, and KWOK
	// does not ask anybody to. Its class is called after it.
	draDriver    = "gpu.nvidia.com"
	draNamespace = "default"
)

// draPlan is what a seed makes: a cluster, and what is to happen in it.
type draPlan struct {
	nodes  []*corev1.Node
	slices []*resourcev1.ResourceSlice
	claims []*resourcev1.ResourceClaim
	pods   []*corev1.Pod
	// deleted names the pods that are deleted once the scheduler has seen all.
	deleted []string
}

// draMaker makes a plan. All of it comes from one stream of throws: unlike a pod of
// lab diff, nothing here is ever made again on its own.
type draMaker struct {
	dice
	draPlan
}

func planDRA(seed uint64, nodes, pods int) *draPlan {
	m := &draMaker{dice: newDice(SubSeed(seed, 0))}
	for n := range nodes {
		m.node(n)
	}
	for len(m.pods) < pods {
		m.workload(pods - len(m.pods))
	}
	for _, pod := range m.pods {
		if m.oneIn(5) {
			m.deleted = append(m.deleted, pod.Name)
		}
	}
	return &m.draPlan
}

// node makes a node of a device plugin, of DRA, or of both. The first two are one of
// each, so that small clusters have something to compare as well.
func (m *draMaker) node(n int) {
	name := fmt.Sprintf("node-%d", n)
	list := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	kind := n
	if n > 1 {
		kind = m.upTo(9)
	}
	if kind%3 == 0 {
		list[count.NVIDIA] = *resource.NewQuantity(int64(1+m.upTo(7)), resource.DecimalSI)
	}
	if kind%3 != 0 || kind == 9 { // on 9 the scheduler goes by the device plugin, but for claims
		m.pool(name)
	}
	m.nodes = append(m.nodes, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: list, Allocatable: list},
	})
}

// pool makes a node's devices, in one slice or two, with what makes pools hard.
func (m *draMaker) pool(node string) {
	devices := m.devices(1 + m.upTo(7))
	generation, of := int64(1), int64(1)
	if m.oneIn(4) { // an update that its driver has not cleaned up behind
		m.slice(node, "old", generation, 1, m.devices(8))
		generation++
	}
	if half := len(devices) / 2; half > 0 && m.oneIn(3) {
		m.slice(node, "b", generation, 2, devices[half:])
		devices, of = devices[:half], 2
	} else if m.oneIn(8) {
		of = 2 // the second slice has not come yet: the scheduler hands out nothing
	}
	m.slice(node, "a", generation, of, devices)
}

func (m *draMaker) slice(node, suffix string, generation, of int64, devices []resourcev1.Device) {
	m.slices = append(m.slices, &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-" + suffix},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: draDriver, NodeName: &node, Devices: devices,
			Pool: resourcev1.ResourcePool{Name: node, Generation: generation, ResourceSliceCount: of},
		},
	})
}

// devices makes GPUs. Some are broken, and some can be had by two claims at once.
func (m *draMaker) devices(n int) (out []resourcev1.Device) {
	kind, yes := "gpu", true
	for i := range n {
		d := resourcev1.Device{
			Name:       fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}},
		}
		if m.oneIn(6) {
			d.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		}
		if m.oneIn(6) {
			share := resource.MustParse("8Gi")
			d.AllowMultipleAllocations = &yes
			d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {
				Value:         resource.MustParse("16Gi"),
				RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &share, ValidValues: []resource.Quantity{share}},
			}}
		}
		out = append(out, d)
	}
	return out
}

// workload makes a pod, or two that share a claim if there is room for two.
func (m *draMaker) workload(room int) {
	switch m.upTo(9) {
	case 0, 1, 2:
		m.claimPod(m.claim())
	case 3, 4:
		claim := m.claim()
		m.claimPod(claim)
		if room > 1 {
			m.claimPod(claim)
		}
	default:
		m.extendedPod()
	}
}

// extendedPod asks for GPUs in the way that people know, and does not say where they
// come from.
func (m *draMaker) extendedPod() {
	pod := m.pod()
	gpus := func(n int) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{count.NVIDIA: *resource.NewQuantity(int64(n), resource.DecimalSI)}}
	}
	n := 1 + m.upTo(m.upTo(3)) // more small ones, or few would find a node
	if n > 1 && m.oneIn(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "d", Image: "busybox", Resources: gpus(1)})
		n--
	}
	pod.Spec.Containers[0].Resources = gpus(n)
	if m.oneIn(6) {
		pod.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "busybox", Resources: gpus(1 + m.upTo(2))}}
	}
}

func (m *draMaker) claimPod(claim string) {
	pod := m.pod()
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimName: &claim}}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpus"}}
}

func (m *draMaker) pod() *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: draNamespace, Name: fmt.Sprintf("pod-%d", len(m.pods))},
		Spec: corev1.PodSpec{
			Containers:    []corev1.Container{{Name: "c", Image: "busybox"}},
			RestartPolicy: corev1.RestartPolicyNever,
			// Nodes are not the question here, and are not ready at once.
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	m.pods = append(m.pods, pod)
	return pod
}

// claim makes a claim and returns its name. Some want devices for administration,
// and some take broken ones.
func (m *draMaker) claim() string {
	exactly := &resourcev1.ExactDeviceRequest{
		DeviceClassName: draDriver, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(1 + m.upTo(2)),
	}
	if m.oneIn(6) {
		exactly.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	}
	if yes := true; m.oneIn(8) {
		exactly.AdminAccess = &yes
	}
	name := fmt.Sprintf("claim-%d", len(m.claims))
	m.claims = append(m.claims, &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: draNamespace, Name: name},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus", Exactly: exactly}}}},
	})
	return name
}

// draClass says that the driver's GPUs are what pods ask for as nvidia.com/gpu.
func draClass() *resourcev1.DeviceClass {
	name := count.NVIDIA
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: draDriver},
		Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: &name,
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf(`device.driver == %q && device.attributes[%q].type == "gpu"`, draDriver, draDriver),
			}}},
		},
	}
}
