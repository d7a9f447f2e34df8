package server

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const nodeName = "ip-10-xxxxxx.us-west-2.compute.internal"

// GPUsPerNode is how many GPUs each GPU node has.
const GPUsPerNode = 8

// imagesPerNode is how many images a node reports; a kubelet reports 50 at most.
const imagesPerNode = 26

// node is a node of a cloud as its kubelet and the cloud's controllers describe it.
func node(gpu bool) (*corev1.Node, error) {
	n := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeName, UID: "Uxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", ResourceVersion: "Vxxxxxxxxx", CreationTimestamp: created,
			Labels: map[string]string{
				corev1.LabelHostname: nodeName, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
				corev1.LabelTopologyZone: "us-west-2a", corev1.LabelTopologyRegion: "us-west-2", corev1.LabelInstanceTypeStable: "m7i.8xlarge",
				"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/instance-type": "m7i.8xlarge",
				"eks.amazonaws.com/capacityType": "ON_DEMAND", "eks.amazonaws.com/nodegroup": "general-purpose-20260314", "topology.ebs.csi.aws.com/zone": "us-west-2a",
			},
			Annotations: map[string]string{
				"csi.volume.kubernetes.io/nodeid":                        `{"ebs.csi.aws.com":"i-0f3a9c2b7d1e58460","efs.csi.aws.com":"i-0f3a9c2b7d1e58460"}`,
				"node.alpha.kubernetes.io/ttl":                           "300",
				"volumes.kubernetes.io/controller-managed-attach-detach": "true",
			},
		},
		Spec: corev1.NodeSpec{ProviderID: "aws:///us-west-2a/i-0f3a9c2b7d1e58460", PodCIDR: "10.20.30.0/24", PodCIDRs: []string{"10.20.30.0/24"}},
		Status: corev1.NodeStatus{
			Capacity: nodeAmounts(), Allocatable: nodeAmounts(), Conditions: nodeConditions(), Images: nodeImages(),
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.20.30.40"}, {Type: corev1.NodeHostName, Address: nodeName}, {Type: corev1.NodeInternalDNS, Address: nodeName}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: "ec2b3f8b0d5f4c1e9a7d6b5c4a392817", SystemUUID: "ec2b3f8b-0d5f-4c1e-9a7d-6b5c4a392817", BootID: "5c0f7a52-8d36-4a3c-9b1f-60c2b3d4e5f6",
				KernelVersion: "6.12.40-63.114.amzn2023.x86_64", OSImage: "Amazon Linux 2023.8.20250818", ContainerRuntimeVersion: "containerd://2.1.4",
				KubeletVersion: Version, OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
	if gpu {
		addGPUs(n)
	}
	if err := manage(n, "kube-controller-manager", "", "spec", created); err != nil {
		return nil, err
	}
	return n, manage(n, "kubelet", "status", "status", created)
}

// addGPUs makes it a node as a device plugin and feature discovery leave it.
func addGPUs(n *corev1.Node) {
	n.Status.Capacity[gpuResource] = *resource.NewQuantity(GPUsPerNode, resource.DecimalSI)
	n.Status.Allocatable[gpuResource] = *resource.NewQuantity(GPUsPerNode, resource.DecimalSI)
	n.Labels[corev1.LabelInstanceTypeStable] = "p5.48xlarge"
	for key, value := range map[string]string{
		"present": "true", "count": "8", "product": "NVIDIA-H100-80GB-HBM3", "family": "hopper", "memory": "81559",
		"compute.major": "9", "compute.minor": "0", "machine": "p5.48xlarge", "replicas": "1", "sharing-strategy": "none",
		"deploy.device-plugin": "true", "deploy.driver": "pre-installed", "deploy.dcgm-exporter": "true",
	} {
		n.Labels["nvidia.com/gpu."+key] = value
	}
	n.Spec.Taints = []corev1.Taint{{Key: gpuResource, Value: "present", Effect: corev1.TaintEffectNoSchedule}}
}

func nodeAmounts() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("31850m"), corev1.ResourceMemory: resource.MustParse("127152616Ki"), corev1.ResourcePods: resource.MustParse("234"),
		corev1.ResourceEphemeralStorage: resource.MustParse("95551679124"), "hugepages-1Gi": resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("0"),
	}
}

func nodeConditions() (out []corev1.NodeCondition) {
	for _, c := range []struct {
		t               corev1.NodeConditionType
		status          corev1.ConditionStatus
		reason, message string
	}{
		{corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		{corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		{corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
		{corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"},
	} {
		out = append(out, corev1.NodeCondition{Type: c.t, Status: c.status, Reason: c.reason, Message: c.message, LastHeartbeatTime: created, LastTransitionTime: created})
	}
	return out
}

func nodeImages() (out []corev1.ContainerImage) {
	for i := range imagesPerNode {
		repository := fmt.Sprintf("registry.example.com/team-%c/service-%02d", 'a'+i%7, i)
		out = append(out, corev1.ContainerImage{
			Names:     []string{fmt.Sprintf("%s@sha256:%016x%016x%016x%016x", repository, mix(uint64(i)), mix(uint64(i+100)), mix(uint64(i+200)), mix(uint64(i+300))), fmt.Sprintf("%s:v1.%d.0", repository, i)},
			SizeBytes: 120_000_000 + int64(i)*1_234_567,
		})
	}
	return out
}
