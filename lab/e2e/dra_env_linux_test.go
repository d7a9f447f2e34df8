package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
	"github.com/gpu-summary/gpu-summary-controller/lab/gpudriver"
)

// programsInside is where the node has programs of its own. Outside of it there is no
// such directory.
const programsInside = "/run/programs"

// init lets the node's containerd, which is given the path of this process, prefer a
// runtime that is put there later (runtimeOfClaims).
func init() {
	if err := os.Setenv("PATH", programsInside+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		panic(err)
	}
}

// runtimeOfClaims puts gpudriver in front of the node's runc, so that containers find
// the devices of their claims whatever containerd knows of CDI.
var runtimeOfClaims = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), setUpTimeout)
	defer cancel()
	module, err := compile.Module()
	if err != nil {
		return err
	}
	built := filepath.Join(lab.dir, gpudriver.RuntimeName)
	cmd := compile.Go(ctx, module, "build", "-ldflags=-s -w", "-o", built, "./cmd/gpudriver")
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the runtime: %w\n%s", err, out)
	}
	step("the runtime for claims is built")
	root := filepath.Dir(filepath.Dir(lab.node.KubeletDir()))
	// In one step: containers may be starting.
	return os.Rename(built, filepath.Join(root, programsInside, gpudriver.RuntimeName))
})

// newDRA is newEnv with a node whose driver is one of DRA until the end of the test.
func newDRA(t *testing.T) *env {
	t.Helper()
	e := newEnv(t)
	e.readyForDRA()
	e.use(gpudriver.DRA)
	e.rows("dra: 8 of 8 healthy, 0 requested, 8 free, 0 overcommitted")
	return e
}

// readyForDRA installs what belongs to a DRA driver, until the end of the test.
func (e *env) readyForDRA() {
	e.Helper()
	e.must(runtimeOfClaims())
	e.Cleanup(e.backToDevicePlugin)
	for _, class := range gpudriver.Classes() {
		_, err := e.client.ResourceV1().DeviceClasses().Create(e.Context(), class, metav1.CreateOptions{})
		e.must(err)
	}
}

// use changes the driver's mode, and waits until the kubelet has seen it.
func (e *env) use(mode gpudriver.Mode) {
	e.Helper()
	e.must(lab.driver.Use(e.Context(), mode))
	if mode == gpudriver.DRA {
		e.nodeHas(e.Context(), 0)
		return
	}
	e.nodeHas(e.Context(), devices)
}

// backToDevicePlugin removes the test's pods, for which the kubelet needs the driver
// that has prepared their claims, and leaves the node as the other tests expect it.
func (e *env) backToDevicePlugin() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if e.Failed() { // clean describes the rest, and finds none of the pods any more
		pods, err := e.client.CoreV1().Pods(e.namespace).List(ctx, metav1.ListOptions{})
		e.must(err)
		for _, pod := range pods.Items {
			e.Log(describe(&pod))
		}
	}
	for _, d := range lab.driver.Devices() {
		e.must(lab.driver.SetHealthy(d.Name, true))
	}
	e.must(lab.driver.Use(ctx, gpudriver.DRA))
	e.empty(ctx)
	e.must(lab.driver.Use(ctx, gpudriver.DevicePlugin))
	e.nodeHas(ctx, devices)
	for _, class := range gpudriver.Classes() {
		if err := e.client.ResourceV1().DeviceClasses().Delete(ctx, class.Name, metav1.DeleteOptions{}); err != nil {
			e.Errorf("clean up: %v", err)
		}
	}
}

// asks is a request for so many GPUs.
func asks(gpus int64) resourcev1.ResourceClaimSpec {
	return claimOf(resourcev1.ExactDeviceRequest{AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: gpus})
}

func claimOf(request resourcev1.ExactDeviceRequest) resourcev1.ResourceClaimSpec {
	request.DeviceClassName = gpudriver.DRADriver
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &request}}}}
}

// claim makes a claim, which stays when its pods go.
func (e *env) claim(name string, spec resourcev1.ResourceClaimSpec) corev1.PodResourceClaim {
	e.Helper()
	_, err := e.client.ResourceV1().ResourceClaims(e.namespace).Create(e.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	e.must(err)
	return corev1.PodResourceClaim{Name: "gpus", ResourceClaimName: &name}
}

// template makes a template, of which each pod has a claim of its own.
func (e *env) template(name string, spec resourcev1.ResourceClaimSpec) corev1.PodResourceClaim {
	e.Helper()
	_, err := e.client.ResourceV1().ResourceClaimTemplates(e.namespace).Create(e.Context(), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: spec},
	}, metav1.CreateOptions{})
	e.must(err)
	return corev1.PodResourceClaim{Name: "gpus", ResourceClaimTemplateName: &name}
}

// user describes a pod with a claim, in two containers: one stays until it is told to
// end, and the other prints what it finds.
func user(name string, claim corev1.PodResourceClaim) *corev1.Pod {
	p := pod(name, container("c", 0, "hold"), container("env", 0, "env"))
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{claim}
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Resources.Claims = []corev1.ResourceClaim{{Name: claim.Name}}
	}
	return p
}

// found is the driver's variables that the pod's container env has printed.
func (e *env) found(name string) map[string]string {
	e.Helper()
	e.eventually("pod "+name+" to have printed what it finds", func() error {
		pod, err := e.client.CoreV1().Pods(e.namespace).Get(e.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.Name == "env" && c.State.Terminated != nil {
				return nil
			}
		}
		return errors.New(describe(pod))
	})
	variables := map[string]string{}
	for line := range strings.Lines(e.log(name, "env")) {
		variable, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && strings.HasPrefix(variable, "GPU_SUMMARY_DEVICE_") || variable == gpudriver.AdminVariable {
			variables[variable] = value
		}
	}
	return variables
}

// finds compares what a pod of user has found with the devices, by name.
func (e *env) finds(name string, devices []string, more ...string) {
	e.Helper()
	want := map[string]string{}
	for _, d := range lab.driver.Devices() {
		if slices.Contains(devices, d.Name) {
			want[gpudriver.Variable(d.Name)] = d.UUID
		}
	}
	for _, variable := range more {
		want[variable] = "true"
	}
	if diff := cmp.Diff(want, e.found(name)); diff != "" {
		e.Errorf("in pod %s, which has %q (-want +got):\n%s", name, devices, diff)
	}
}

// given waits until the kubelet has given the test's pods the devices that their claims
// are allocated, and returns their names by pod.
func (e *env) given() map[string][]string {
	e.Helper()
	var prepared map[string][]string
	e.eventually("the kubelet to have prepared what is allocated", func() error {
		allocated, err := e.allocated()
		if err != nil {
			return err
		}
		if prepared, err = e.prepared(); err != nil {
			return err
		}
		if diff := cmp.Diff(allocated, prepared); diff != "" {
			return fmt.Errorf("-allocated +prepared:\n%s", diff)
		}
		return nil
	})
	return prepared
}

// allocated is the devices of each pod by the claims that are reserved for it.
func (e *env) allocated() (map[string][]string, error) {
	claims, err := e.client.ResourceV1().ResourceClaims(e.namespace).List(e.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := sets{}
	for _, claim := range claims.Items {
		for _, pod := range claim.Status.ReservedFor {
			for _, r := range claim.Status.Allocation.Devices.Results {
				found.add(pod.Name, r.Driver, r.Pool, r.Device)
			}
		}
	}
	return found.sorted(e.node.Name())
}

// prepared is the devices of each pod by the kubelet's pod-resources API.
func (e *env) prepared() (map[string][]string, error) {
	list, err := podResources(e.Context(), e.node)
	if err != nil {
		return nil, err
	}
	found := sets{}
	for _, p := range list {
		if p.Namespace != e.namespace {
			continue
		}
		for _, c := range p.Containers {
			for _, claim := range c.DynamicResources {
				for _, r := range claim.ClaimResources {
					found.add(p.Name, r.DriverName, r.PoolName, r.DeviceName)
				}
			}
		}
	}
	return found.sorted(e.node.Name())
}

// sets is full names of devices by pod.
type sets map[string]map[string]bool

func (s sets) add(pod, driver, pool, device string) {
	if s[pod] == nil {
		s[pod] = map[string]bool{}
	}
	s[pod][driver+"/"+pool+"/"+device] = true
}

// sorted is the bare names of devices, all of which are of the driver and the node.
func (s sets) sorted(node string) (map[string][]string, error) {
	names := map[string][]string{}
	for pod, devices := range s {
		for _, device := range slices.Sorted(maps.Keys(devices)) {
			name, ok := strings.CutPrefix(device, gpudriver.DRADriver+"/"+node+"/")
			if !ok {
				return nil, fmt.Errorf("pod %s has device %s, which is not of node %s", pod, device, node)
			}
			names[pod] = append(names[pod], name)
		}
	}
	return names, nil
}
