package integration

import (
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// TestAnExtendedResourceServedByDRA: D2 and A8, with the real scheduler. The pod
// asks for nvidia.com/gpu, the node has none to allocate, and the scheduler makes
// the pod a claim. One device is in use, nothing is counted twice, and nothing is
// below zero.
func TestAnExtendedResourceServedByDRA(t *testing.T) {
	e := newEnv(t)
	e.gpuClass()
	e.node("gpu-1", 0)
	e.offer("gpu-1", 8)
	c := e.start()
	c.dra("synced")
	e.rowsAre("gpu-1 dra 8/8 requested 0 free 8")

	pod := e.schedule("a", 1)
	e.rowsAre("gpu-1 dra 8/8 requested 1 free 7")
	if pod.Status.ExtendedResourceClaimStatus == nil {
		t.Error("the scheduler has made no claim: this test shows nothing")
	}
	e.shows("gpu-1=1")
	for annotation, want := range map[string]string{"requested": "1", "allocatable": "8", "free": "7", "overcommitted": "0", "orphaned": "0", "pending": "0"} {
		e.total("gpu-summary/"+annotation, want)
	}

	e.schedule("b", 3)
	e.rowsAre("gpu-1 dra 8/8 requested 4 free 4")
	e.create(unbound(e, "too-large", 5))
	e.total("gpu-summary/pending", "5")
	e.remove("a")
	e.remove("too-large")
	e.rowsAre("gpu-1 dra 8/8 requested 3 free 5")
	e.finish("b", corev1.PodSucceeded)
	e.rowsAre("gpu-1 dra 8/8 requested 0 free 8")
}

func unbound(e *env, name string, gpus int) *corev1.Pod {
	pod := e.pod(name, gpus)
	pod.Spec.SchedulerName = ""
	return pod
}

// TestClaims: D3 and D4. A claim's devices are in use while it holds them, however
// many pods share it; administration takes none; and a slice that is replaced or
// tainted is what counts at once.
func TestClaims(t *testing.T) {
	e := newEnv(t)
	e.allowAdmin()
	e.gpuClass()
	e.node("gpu-1", 0)
	e.node("gpu-2", 0)
	e.offer("gpu-1", 4)
	e.offer("gpu-2", 4)
	e.start()
	e.rowsAre("gpu-1 dra 4/4 requested 0 free 4", "gpu-2 dra 4/4 requested 0 free 4")

	e.claim("shared", 2)
	e.schedule("a", 0, withClaim("shared"), onNode("gpu-1"))
	e.schedule("b", 0, withClaim("shared"))
	e.rowsAre("gpu-1 dra 4/4 requested 2 free 2", "gpu-2 dra 4/4 requested 0 free 4")

	e.claim("all", 4)
	e.schedule("c", 0, withClaim("all"))
	e.rowsAre("gpu-1 dra 4/4 requested 2 free 2", "gpu-2 dra 4/4 requested 4 free 0")

	admin := true
	e.claim("admin", 3, func(r *resourcev1.ExactDeviceRequest) { r.AdminAccess = &admin })
	e.schedule("monitor", 0, withClaim("admin"), onNode("gpu-2"))
	e.schedule("d", 1)
	e.rowsAre("gpu-1 dra 4/4 requested 3 free 1", "gpu-2 dra 4/4 requested 4 free 0")

	e.taint("gpu-2-gpus", 0)
	e.rowsAre("gpu-1 dra 4/4 requested 3 free 1", "gpu-2 dra 4/3 requested 4 free 0 over 1")

	e.remove("a")
	e.rowsAre("gpu-1 dra 4/4 requested 3 free 1", "gpu-2 dra 4/3 requested 4 free 0 over 1")
	e.remove("b")
	e.remove("c")
	e.rowsAre("gpu-1 dra 4/4 requested 1 free 3", "gpu-2 dra 4/3 requested 0 free 3")
	e.must(e.client.ResourceV1().ResourceClaims(e.namespace).Delete(t.Context(), "all", metav1.DeleteOptions{}))
	e.remove("d")
	e.rowsAre("gpu-1 dra 4/4 requested 0 free 4", "gpu-2 dra 4/3 requested 0 free 3")
}

// allowAdmin lets claims of the test's namespace ask for administrative access.
func (e *env) allowAdmin() {
	e.Helper()
	ns, err := e.client.CoreV1().Namespaces().Get(e.Context(), e.namespace, metav1.GetOptions{})
	e.must(err)
	ns.Labels["resource.kubernetes.io/admin-access"] = "true"
	_, err = e.client.CoreV1().Namespaces().Update(e.Context(), ns, metav1.UpdateOptions{})
	e.must(err)
}

// taint lets nobody have a device of a slice any more, as its driver would.
func (e *env) taint(slice string, device int) {
	e.Helper()
	e.must(retried(func() error {
		s, err := e.client.ResourceV1().ResourceSlices().Get(e.Context(), slice, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s.Spec.Pool.Generation++
		s.Spec.Devices[device].Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		_, err = e.client.ResourceV1().ResourceSlices().Update(e.Context(), s, metav1.UpdateOptions{})
		return err
	}))
}

// TestFromDevicePluginToDRAAndBack: D2. Each pod stays counted once, where its
// devices come from, while its node changes sides under it.
func TestFromDevicePluginToDRAAndBack(t *testing.T) {
	e := newEnv(t)
	e.gpuClass()
	e.node("gpu-1", 4)
	e.start()
	e.rowsAre("gpu-1 device-plugin 4/4 requested 0 free 4")
	e.schedule("old", 1)
	e.rowsAre("gpu-1 device-plugin 4/4 requested 1 free 3")

	e.offer("gpu-1", 4)
	e.rowsAre("gpu-1 device-plugin 4/4 requested 1 free 3", "gpu-1 dra 4/4 requested 0 free 4")
	e.plugin("gpu-1", 0)
	e.rowsAre("gpu-1 device-plugin 0/0 requested 1 free 0 over 1", "gpu-1 dra 4/4 requested 0 free 4")
	e.remove("old")
	e.rowsAre("gpu-1 dra 4/4 requested 0 free 4")
	e.schedule("new", 1)
	e.rowsAre("gpu-1 dra 4/4 requested 1 free 3")
	e.shows("gpu-1=1")

	e.plugin("gpu-1", 4)
	e.rowsAre("gpu-1 device-plugin 4/4 requested 0 free 3 claimed 1", "gpu-1 dra 4/4 requested 1 free 3")
	e.shows("gpu-1=1")
	e.remove("new")
	e.rowsAre("gpu-1 device-plugin 4/4 requested 0 free 4", "gpu-1 dra 4/4 requested 0 free 4")
}

// TestPermissionForDRAComesAndGoes: without the rules everything else works; with
// them DRA is counted, and the controller is not restarted.
func TestPermissionForDRAComesAndGoes(t *testing.T) {
	e := newEnv(t)
	e.gpuClass()
	e.node("gpu-1", 8)
	e.node("gpu-2", 0)
	e.offer("gpu-2", 4)
	cluster, own := e.rules("")
	var without []rbacv1.PolicyRule
	for _, rule := range cluster {
		if rule.APIGroups[0] != resourcev1.GroupName {
			without = append(without, rule)
		}
	}
	e.user(without, own)
	user, err := e.plane.ConfigFor("user-of-" + e.namespace)
	e.must(err)
	w := &wire{}
	c := e.start(func(config *rest.Config, _ *run.Options) { *config = *user }, w.through)
	e.shows("gpu-1=0")
	e.must(c.ready())
	c.dra("forbidden: no permission to list and watch deviceclasses, resourceclaims, resourceslices in resource.k8s.io")

	grant := func(rules []rbacv1.PolicyRule) {
		role, err := e.client.RbacV1().ClusterRoles().Get(t.Context(), "user-of-"+e.namespace, metav1.GetOptions{})
		e.must(err)
		role.Rules = rules
		_, err = e.client.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{})
		e.must(err)
	}
	grant(cluster)
	e.rowsAre("gpu-1 device-plugin 8/8 requested 0 free 8", "gpu-2 dra 4/4 requested 0 free 4")
	c.dra("synced")

	// A watch that is open stays open; only the next one is refused.
	grant(without)
	w.sever()
	w.mend()
	c.dra("forbidden")
	e.shows("gpu-1=0")
	e.bound("a", "gpu-1", 2)
	e.shows("gpu-1=2")
	e.must(c.ready())
}

// TestTheAPIOfDRAComesAndGoes: B4. A server without resource.k8s.io/v1 costs a line
// in /readyz; one with it is noticed without a restart, and so is its end.
func TestTheAPIOfDRAComesAndGoes(t *testing.T) {
	e := newEnv(t)
	e.gpuClass()
	e.node("gpu-1", 8)
	e.node("gpu-2", 0)
	e.offer("gpu-2", 4)
	without := e.serverWithoutDRA()

	d := &detour{}
	d.to.Store(&without)
	c := e.start(d.through)
	e.shows("gpu-1=0")
	c.dra("absent: the API server does not serve resource.k8s.io")
	e.must(c.ready())

	d.to.Store(nil)
	e.rowsAre("gpu-1 device-plugin 8/8 requested 0 free 8", "gpu-2 dra 4/4 requested 0 free 4")
	c.dra("synced")

	d.to.Store(&without)
	d.endWatches()
	c.dra("absent")
	e.shows("gpu-1=0")
	e.must(c.ready())
	e.bound("a", "gpu-1", 2)
	e.shows("gpu-1=2")
}

// readyz is the text of /readyz, whatever its verdict.
func (c *controller) readyz() (string, error) {
	res, err := http.Get(c.url + "/readyz")
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}
