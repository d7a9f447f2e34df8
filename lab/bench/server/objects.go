package server

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// gpuResource is what GPU pods ask for and GPU nodes have.
const gpuResource = "nvidia.com/gpu"

var created = metav1.NewTime(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))

func (k podKind) gpu() bool { return k != plainPod }

// pod is a pod as a Deployment makes it and a kubelet runs it: what a pod of a
// live cluster has and none of a unit test, in the amounts that are common there.
func pod(kind podKind) (*corev1.Pod, error) {
	name, image := "frontend-7c9f8d6b5d", "registry.example.com/payments/frontend:v1.42.0"
	if kind.gpu() {
		name, image = "trainer-5b8d6f9c7d", "registry.example.com/research/trainer:v0.9.3"
	}
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-xxxxxxxx", GenerateName: name + "-", Namespace: "team-xxx", UID: "Uxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
			ResourceVersion: "Vxxxxxxxxx", CreationTimestamp: created, Generation: 1,
			Labels: map[string]string{
				"app.kubernetes.io/name": name[:len(name)-11], "app.kubernetes.io/instance": "production", "app.kubernetes.io/managed-by": "Helm",
				"pod-template-hash": name[len(name)-10:], "version": "v1.42.0",
			},
			Annotations: map[string]string{
				"checksum/config":      "d2f0a9c1b7e84f6fa1c3e5d7092b4a6c8e0f1a3b5c7d9e1f2a4b6c8d0e2f4a6b",
				"prometheus.io/scrape": "true", "prometheus.io/port": "9102", "kubectl.kubernetes.io/default-container": "main",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: "6c1f7f5e-2b7a-4d58-9c37-3a0d5be0c811",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec:   podSpec(kind, image),
		Status: podStatus(kind, image),
	}
	if err := manage(p, "kube-controller-manager", "", "spec", created); err != nil {
		return nil, err
	}
	return p, manage(p, "kubelet", "status", "status", created)
}

func podSpec(kind podKind, image string) corev1.PodSpec {
	c := container(image, 2)
	if kind.gpu() {
		// One digit, which newTemplate finds again.
		c.Resources.Requests[gpuResource] = resource.MustParse("7")
		c.Resources.Limits[gpuResource] = resource.MustParse("7")
	}
	tolerate := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)}
	}
	return corev1.PodSpec{
		NodeName: nodeName, RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
		ServiceAccountName: "workload", DeprecatedServiceAccount: "workload", TerminationGracePeriodSeconds: ptr.To[int64](30),
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), FSGroup: ptr.To[int64](2000)}, EnableServiceLinks: ptr.To(true),
		Priority: ptr.To[int32](0), PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority),
		Tolerations: []corev1.Toleration{tolerate("node.kubernetes.io/not-ready"), tolerate("node.kubernetes.io/unreachable")},
		Containers:  []corev1.Container{c},
		Volumes: []corev1.Volume{
			{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](420), Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: ptr.To[int64](3607), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
			}}}},
			{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, DefaultMode: ptr.To[int32](420)}}},
		},
	}
}

func container(image string, variables int) corev1.Container {
	amounts := func() corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
			TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
		}
	}
	c := corev1.Container{
		Name: "main", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{Requests: amounts(), Limits: amounts()},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "settings", MountPath: "/etc/settings", ReadOnly: true},
			{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		LivenessProbe: probe("/livez"), ReadinessProbe: probe("/readyz"),
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
	for i := range variables {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("UPSTREAM_%02d_URL", i), Value: fmt.Sprintf("https://upstream-%02d.backend.svc.cluster.local:8443/v1", i)})
	}
	return c
}

func podStatus(kind podKind, image string) corev1.PodStatus {
	s := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "10.20.30.40", HostIPs: []corev1.HostIP{{IP: "10.20.30.40"}},
		PodIP: "10.1xx.1xx.1xx", PodIPs: []corev1.PodIP{{IP: "10.1xx.1xx.1xx"}}, StartTime: &created, QOSClass: corev1.PodQOSGuaranteed, ObservedGeneration: 1,
	}
	for _, t := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: created, ObservedGeneration: 1})
	}
	status := corev1.ContainerStatus{
		Name: "main", Ready: true, Started: ptr.To(true), Image: image,
		ImageID:     "registry.example.com/image@sha256:4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce",
		ContainerID: "containerd://CONTAINER_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: created}},
	}
	if kind == finishedPod {
		s.Phase = corev1.PodSucceeded
		status.Ready, status.Started = false, ptr.To(false)
		status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: created, FinishedAt: created}}
	}
	s.ContainerStatuses = []corev1.ContainerStatus{status}
	return s
}
