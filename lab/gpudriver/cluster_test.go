package gpudriver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// testCluster is one test's part of the cluster: a namespace, and a node whose
// kubelet is KWOK.
type testCluster struct {
	*testing.T
	client          kubernetes.Interface
	namespace, node string
}

func newCluster(t *testing.T) *testCluster {
	t.Helper()
	c := &testCluster{T: t, client: cluster(t)}
	ns, err := c.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "gpu-", Labels: map[string]string{resourcev1.DRAAdminNamespaceLabelKey: "true"},
	}}, metav1.CreateOptions{})
	must(t, err)
	c.namespace, c.node = ns.Name, ns.Name
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
	_, err = c.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: c.node, Labels: map[string]string{corev1.LabelHostname: c.node}}, Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}, metav1.CreateOptions{})
	must(t, err)
	for _, class := range Classes() {
		if _, err := c.client.ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			must(t, err)
		}
	}
	t.Cleanup(func() {
		ctx := context.Background()
		for _, err := range []error{
			c.client.CoreV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{}),
			c.client.CoreV1().Nodes().Delete(ctx, c.node, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Errorf("clean up: %v", err)
			}
		}
	})
	return c
}

func (c *testCluster) slices() []resourcev1.ResourceSlice {
	c.Helper()
	list, err := c.client.ResourceV1().ResourceSlices().List(c.Context(), metav1.ListOptions{FieldSelector: resourcev1.ResourceSliceSelectorNodeName + "=" + c.node})
	must(c.T, err)
	return list.Items
}

// published waits until these are the devices of the node's slices.
func (c *testCluster) published(want ...string) {
	c.Helper()
	eventually(c.T, fmt.Sprintf("devices %q", want), func() error {
		var got []string
		for _, slice := range c.slices() {
			for _, d := range slice.Spec.Devices {
				got = append(got, describe(d))
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("they are %q", got)
		}
		return nil
	})
}

func describe(d resourcev1.Device) string {
	words := []string{d.Name, *d.Attributes["type"].StringValue}
	if profile := d.Attributes["profile"].StringValue; profile != nil {
		words = append(words, *profile)
	}
	if d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations {
		slots := d.Capacity[slotCapacity].Value
		words = append(words, "shared by", slots.String())
	}
	for _, taint := range d.Taints {
		if taint.Key == UnhealthyTaint && taint.Effect == resourcev1.DeviceTaintEffectNoSchedule {
			words = append(words, "tainted")
		}
	}
	return strings.Join(words, " ")
}

func asks(name, class string, devices int64, changes ...func(*resourcev1.ExactDeviceRequest)) resourcev1.DeviceRequest {
	exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: devices}
	for _, change := range changes {
		change(exactly)
	}
	return resourcev1.DeviceRequest{Name: name, Exactly: exactly}
}

// claimed makes a claim.
func (c *testCluster) claimed(name string, r resourcev1.DeviceRequest) {
	c.Helper()
	_, err := c.client.ResourceV1().ResourceClaims(c.namespace).Create(c.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{r}}},
	}, metav1.CreateOptions{})
	must(c.T, err)
}

// useClaim lets the pod's container use a claim.
func useClaim(pod *corev1.Pod, claim string) {
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimName: &claim}}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpus"}}
}

// allocated makes a claim, lets the scheduler allocate it for a pod, and returns it.
func (c *testCluster) allocated(name string, r resourcev1.DeviceRequest) (claim *resourcev1.ResourceClaim) {
	c.Helper()
	c.claimed(name, r)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelHostname: c.node},
		Containers:   []corev1.Container{{Name: "c", Image: "none"}},
		Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}
	useClaim(pod, name)
	eventually(c.T, "pod "+name, func() error { // the namespace's service account takes a moment
		_, err := c.client.CoreV1().Pods(c.namespace).Create(c.Context(), pod, metav1.CreateOptions{})
		return err
	})
	eventually(c.T, "claim "+name+" to be allocated", func() error {
		if claim = c.claim(name); claim.Status.Allocation == nil {
			return errNotYet
		}
		return nil
	})
	return claim
}

func (c *testCluster) claim(name string) *resourcev1.ResourceClaim {
	c.Helper()
	claim, err := c.client.ResourceV1().ResourceClaims(c.namespace).Get(c.Context(), name, metav1.GetOptions{})
	must(c.T, err)
	return claim
}

// withAllocation makes a claim that has its allocation from nobody.
func (c *testCluster) withAllocation(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	c.Helper()
	status := claim.Status
	status.ReservedFor = nil
	made, err := c.client.ResourceV1().ResourceClaims(c.namespace).Create(c.Context(), claim, metav1.CreateOptions{})
	must(c.T, err)
	made.Status = status
	made, err = c.client.ResourceV1().ResourceClaims(c.namespace).UpdateStatus(c.Context(), made, metav1.UpdateOptions{})
	must(c.T, err)
	return made
}
