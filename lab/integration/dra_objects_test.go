package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// draDriver is a driver that exists in ResourceSlices only: nobody prepares a
// device, and KWOK does not ask anybody to. Its class is called after it.
const draDriver = "gpu.nvidia.com"

// gpuClass makes the driver's class, which names nvidia.com/gpu.
func (e *env) gpuClass() {
	e.Helper()
	name := count.NVIDIA
	classes := e.client.ResourceV1().DeviceClasses()
	_, err := classes.Create(e.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: draDriver},
		Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: &name,
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf(`device.driver == %q && device.attributes[%q].type == "gpu"`, draDriver, draDriver),
			}}},
		},
	}, metav1.CreateOptions{})
	e.must(err)
	e.Cleanup(func() { e.must(classes.Delete(context.Background(), draDriver, metav1.DeleteOptions{})) })
}

// offer publishes the devices of a node in a pool of its name.
func (e *env) offer(node string, gpus int) {
	e.Helper()
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: draDriver, NodeName: &node,
			Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
	kind := "gpu"
	for i := range gpus {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name:       fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}},
		})
	}
	all := e.client.ResourceV1().ResourceSlices()
	_, err := all.Create(e.Context(), slice, metav1.CreateOptions{})
	e.must(err)
	e.Cleanup(func() { e.must(all.Delete(context.Background(), slice.Name, metav1.DeleteOptions{})) })
}

// claim makes a claim for so many GPUs.
func (e *env) claim(name string, gpus int64, changes ...func(*resourcev1.ExactDeviceRequest)) {
	e.Helper()
	exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: draDriver, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: gpus}
	for _, change := range changes {
		change(exactly)
	}
	_, err := e.client.ResourceV1().ResourceClaims(e.namespace).Create(e.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus", Exactly: exactly}}}},
	}, metav1.CreateOptions{})
	e.must(err)
}

// schedule creates a pod for the real scheduler and waits until it has a node.
func (e *env) schedule(name string, gpus int, changes ...func(*corev1.Pod)) *corev1.Pod {
	e.Helper()
	pod := e.pod(name, gpus)
	pod.Spec.SchedulerName = ""
	for _, change := range changes {
		change(pod)
	}
	e.create(pod)
	e.eventually(name+" to be scheduled", func() (err error) {
		if pod, err = e.client.CoreV1().Pods(e.namespace).Get(e.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if pod.Spec.NodeName == "" {
			return fmt.Errorf("conditions: %v", pod.Status.Conditions)
		}
		return nil
	})
	return pod
}

func onNode(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node} }
}

func withClaim(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimName: &name}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpus"}}
	}
}

// plugin lets a node's device plugin have so many healthy GPUs.
func (e *env) plugin(node string, gpus int64) {
	e.Helper()
	e.must(retried(func() error {
		n, err := e.client.CoreV1().Nodes().Get(e.Context(), node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.Status.Capacity[count.NVIDIA], n.Status.Allocatable[count.NVIDIA] = *resource.NewQuantity(gpus, resource.DecimalSI), *resource.NewQuantity(gpus, resource.DecimalSI)
		_, err = e.client.CoreV1().Nodes().UpdateStatus(e.Context(), n, metav1.UpdateOptions{})
		return err
	}))
}

// rowsAre waits until the published rows are these, each written as "node source
// capacity/allocatable requested r free f", and then compares what they say of DRA
// with a count of its own.
func (e *env) rowsAre(want ...string) {
	e.Helper()
	e.eventually(fmt.Sprintf("rows %q", want), func() error {
		rows, err := e.rows()
		if err != nil {
			return err
		}
		var got []string
		for _, r := range rows {
			line := fmt.Sprintf("%s %s %d/%d requested %d free %d", r.Node, r.Source, r.Capacity, r.Allocatable, r.Requested, r.Free)
			if r.Overcommitted > 0 {
				line += fmt.Sprintf(" over %d", r.Overcommitted)
			}
			if r.Claimed > 0 {
				line += fmt.Sprintf(" claimed %d", r.Claimed)
			}
			got = append(got, line)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("they are %q", got)
		}
		return e.recount(rows)
	})
}

func (e *env) rows() ([]count.Row, error) {
	cm, err := e.client.CoreV1().ConfigMaps(e.namespace).Get(e.Context(), "gpu-capacity", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var document struct{ Rows []count.Row }
	return document.Rows, json.Unmarshal([]byte(cm.Data["nodes.json"]), &document)
}

// recount compares rows with what a loop over claims and slices gives, which knows
// nothing of classes, caches and records: in these tests each pool is a node's, and
// all devices are GPUs.
func (e *env) recount(rows []count.Row) error {
	claims, err := e.client.ResourceV1().ResourceClaims("").List(e.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	offered, err := e.client.ResourceV1().ResourceSlices().List(e.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	held, devices := map[string]map[string]bool{}, map[string]int{}
	for _, c := range claims.Items {
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.AdminAccess == nil || !*r.AdminAccess {
				if held[r.Pool] == nil {
					held[r.Pool] = map[string]bool{}
				}
				held[r.Pool][r.Device] = true
			}
		}
	}
	for _, s := range offered.Items {
		devices[s.Spec.Pool.Name] += len(s.Spec.Devices)
	}
	for _, r := range rows {
		if r.Free < 0 || r.Requested < 0 || r.Overcommitted < 0 {
			return fmt.Errorf("a number is negative: %+v", r)
		}
		if r.Source != count.DynamicResources {
			continue
		}
		if int(r.Requested) != len(held[r.Node]) || int(r.Capacity) != devices[r.Node] {
			return fmt.Errorf("%s: %d of %d devices, counted from the objects %d of %d", r.Node, r.Requested, r.Capacity, len(held[r.Node]), devices[r.Node])
		}
		delete(held, r.Node)
	}
	if len(held) > 0 {
		return fmt.Errorf("nodes with devices in use and without a row: %v", held)
	}
	return nil
}

// dra is what /readyz says of it.
func (c *controller) dra(want string) {
	c.env.Helper()
	c.env.eventually("DRA "+want, func() error {
		body, err := c.readyz()
		if err != nil {
			return err
		}
		if !strings.Contains(body, "[i] dra: "+want) {
			return fmt.Errorf("%s", body)
		}
		return nil
	})
}
