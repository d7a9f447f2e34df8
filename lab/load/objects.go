package load

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Marks on everything a load creates.
const (
	// SourceLabel tells our objects from everybody else's.
	SourceLabel = "lab.gpu-summary/source"
	// Source is the value of SourceLabel.
	Source = "openb"
	// PhaseLabel is on pods whose phase the load sets itself. The lab's KWOK
	// stages leave such pods alone.
	PhaseLabel = "lab.gpu-summary/phase"
	// PendingScheduler is the schedulerName of pods that the record left
	// pending. Nobody runs a scheduler of that name, so they stay so.
	PendingScheduler = "openb-pending"
)

// Names the NVIDIA device plugin and GPU feature discovery give.
const (
	gpuResource     = corev1.ResourceName("nvidia.com/gpu")
	gpuPresentLabel = "nvidia.com/gpu.present"
	gpuProductLabel = "nvidia.com/gpu.product"
	gpuCountLabel   = "nvidia.com/gpu.count"
)

func resources(cpuMilli, memoryMiB, gpus int64) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(cpuMilli, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memoryMiB<<20, resource.BinarySI),
	}
	if gpus > 0 {
		list[gpuResource] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return list
}

// nodeObject is the Node with its status: unlike a pod's, a node's status is
// kept when it is created. The node is born Ready. KWOK would make it so, but a
// node that is not Ready is tainted, initialised and untainted, at four requests
// for each of 1,523 nodes while the pods wait for the same server.
func nodeObject(n *Node, now metav1.Time) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   n.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
		// The controller manager would add these two with a request per node.
		"beta.kubernetes.io/os":   "linux",
		"beta.kubernetes.io/arch": "amd64",
		SourceLabel:               Source,
		"type":                    "kwok",
	}
	if n.GPUs > 0 {
		labels[gpuPresentLabel] = "true"
		labels[gpuCountLabel] = strconv.FormatInt(n.GPUs, 10)
		if n.Model != "" {
			labels[gpuProductLabel] = n.Model
		}
	}
	offers := resources(n.CPUMilli, n.MemoryMiB, n.GPUs)
	offers[corev1.ResourcePods] = *resource.NewQuantity(PodsPerNode, resource.DecimalSI)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        n.Name,
			Labels:      labels,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{
			Capacity:    offers,
			Allocatable: offers.DeepCopy(),
			Conditions:  nodeConditions(now),
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.Name}},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux",
				Architecture:    "amd64",
				KubeletVersion:  "lab",
			},
		},
	}
}

func nodeConditions(now metav1.Time) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
	}
}

// podObject is the Pod, bound to node unless node is empty.
func podObject(p *Pod, namespace, node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      p.Name,
			Labels:    map[string]string{SourceLabel: Source},
		},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{
				Name:      "main",
				Image:     "lab/pause",
				Resources: podResources(p),
			}},
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: new(int64(1)),
			// Without it every pod would be evicted from a node that KWOK has
			// not made Ready yet.
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	if node == "" {
		pod.Spec.SchedulerName = PendingScheduler
	}
	if setByLoad(p.Phase) {
		pod.Labels[PhaseLabel] = string(p.Phase)
	}
	return pod
}

func podResources(p *Pod) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: resources(p.CPUMilli, p.MemoryMiB, p.GPUs)}
	if p.GPUs > 0 {
		// The API insists that an extended resource has a limit equal to its request.
		r.Limits = corev1.ResourceList{gpuResource: r.Requests[gpuResource]}
	}
	return r
}

// setByLoad reports whether the load sets a pod's phase itself. Ended pods it
// has to. KWOK would make bound ones Running, but measured on the whole trace that
// costs the machine more (a patch costs the server more than an update, and KWOK
// has to see each pod first); and this way a cluster without KWOK can be loaded.
func setByLoad(phase corev1.PodPhase) bool { return phase != corev1.PodPending }

// podStatus is what a kubelet would report about pod in the given phase.
func podStatus(pod *corev1.Pod, phase corev1.PodPhase, now metav1.Time) corev1.PodStatus {
	running := phase == corev1.PodRunning
	ready := corev1.ConditionFalse
	if running {
		ready = corev1.ConditionTrue
	}
	status := *pod.Status.DeepCopy()
	status.Phase = phase
	status.StartTime = &now
	status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.ContainersReady, Status: ready, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: ready, LastTransitionTime: now},
	}
	if !running {
		status.Reason, status.Message = "Trace", "the trace says that this pod has ended as "+string(phase)
	}
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: running, Started: &running, State: containerState(phase, now),
		})
	}
	return status
}

func containerState(phase corev1.PodPhase, now metav1.Time) corev1.ContainerState {
	ended := &corev1.ContainerStateTerminated{StartedAt: now, FinishedAt: now}
	switch phase {
	case corev1.PodRunning:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	case corev1.PodSucceeded:
		ended.Reason = "Completed"
	default:
		ended.Reason, ended.ExitCode = "Error", 1
	}
	return corev1.ContainerState{Terminated: ended}
}
