package fit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/fit"
)

// selecting is a selector of pods by the label app.
func selecting(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func beside(app, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selecting(app), TopologyKey: key}},
		}}
	}
}

func apart(app, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selecting(app), TopologyKey: key}},
		}}
	}
}

func spread(app, key string, maxSkew int32, changes ...func(*corev1.TopologySpreadConstraint)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.TopologySpreadConstraint{MaxSkew: maxSkew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selecting(app)}
		for _, change := range changes {
			change(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

func port80(ip string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: 80, HostPort: 80, HostIP: ip})
	}
}

// first puts a container with host port 80 before the others.
func first(policy *corev1.ContainerRestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "i", RestartPolicy: policy, Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}}}
	}
}

func tolerating(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

func elsewhere(p *corev1.Pod) { p.Namespace = "other" }

func zone(name string) func(*corev1.Node) { return labelled("zone", name) }

// two nodes in each of two zones.
func zones(resources string) []*corev1.Node {
	return []*corev1.Node{
		node("a1", resources, zone("a")), node("a2", resources, zone("a")),
		node("b1", resources, zone("b")), node("b2", resources, zone("b")),
	}
}

func selector(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func requiring(key string, op corev1.NodeSelectorOperator, values ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}},
		}}}
	}
}

// TestRules has a case for each thing that the scheduler's filters look at.
func TestRules(t *testing.T) {
	one := func(changes ...func(*corev1.Node)) []*corev1.Node {
		return []*corev1.Node{node("n", "gpu=8", changes...)}
	}
	for _, tc := range []struct {
		name string
		objects
		ask  fit.Question
		want []string
	}{
		{"it fits", objects{nodes: one()}, copies(2, pod("p", "gpu=4")), []string{"fits: 2 of 2, n ×2", "full: none free on 1 node [n]"}},
		{"cordoned", objects{nodes: one(cordoned)}, copies(1, pod("p", "gpu=8")),
			[]string{"does-not-fit: 0 of 1", "cordoned: 8 free on 1 node, but cordoned [n]"}},
		{"cordoned, and tolerated", objects{nodes: one(cordoned)}, copies(1, pod("p", "gpu=8", tolerating(corev1.TaintNodeUnschedulable))),
			[]string{"fits: 1 of 1, n ×1", "full: none free on 1 node [n]"}},
		{"a taint", objects{nodes: one(tainted("team", corev1.TaintEffectNoExecute))}, copies(1, pod("p", "gpu=8")),
			[]string{"does-not-fit: 0 of 1", "tainted: 8 free on 1 node, but the taint team:NoExecute is not tolerated [n]"}},
		{"a tolerated taint", objects{nodes: one(tainted("team", corev1.TaintEffectNoExecute))}, copies(1, pod("p", "gpu=4", tolerating("team"))),
			[]string{"fits: 1 of 1, n ×1"}},
		{"a taint that only asks", objects{nodes: one(tainted("team", corev1.TaintEffectPreferNoSchedule))}, copies(1, pod("p", "gpu=4")),
			[]string{"fits: 1 of 1, n ×1"}},
		{"not ready", objects{nodes: one(tainted(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule))}, copies(1, pod("p", "gpu=8")),
			[]string{"does-not-fit: 0 of 1", "not-ready: 8 free on 1 node, but not ready [n]"}},
		{"the GPU's own taint has to be tolerated", objects{nodes: one(tainted(count.NVIDIA, corev1.TaintEffectNoSchedule))}, copies(1, pod("p", "gpu=8")),
			[]string{"does-not-fit: 0 of 1", "tainted: 8 free on 1 node, but the taint nvidia.com/gpu:NoSchedule is not tolerated [n]"}},
		{"node selector", objects{nodes: one(zone("b"))}, copies(1, pod("p", "gpu=8", selector("zone", "a"))),
			[]string{"does-not-fit: 0 of 1", "not-selected: 8 free on 1 node, but not labelled zone=a [n]"}},
		{"node affinity", objects{nodes: one(zone("b"))}, copies(1, pod("p", "gpu=8", requiring("zone", corev1.NodeSelectorOpNotIn, "b"))),
			[]string{"does-not-fit: 0 of 1", "not-selected: 8 free on 1 node, but the required node affinity does not match [n]"}},
		{"the node is named", objects{nodes: one()}, copies(1, pod("p", "gpu=8", on("m"))),
			[]string{"does-not-fit: 0 of 1", "other-node: 8 free on 1 node, but the pod is for node m [n]"}},
		{"CPU is gone", objects{nodes: append(one(), node("m", "gpu=8 cpu=8")), pods: []*corev1.Pod{pod("p1", "cpu=60500m", on("n"))}}, copies(1, pod("p", "gpu=8 cpu=16")),
			[]string{"does-not-fit: 0 of 1", "cpu: 16 free on 2 nodes, but CPU is gone: at most 8 left, 16 wanted [m n]"}},
		{"memory is gone", objects{nodes: one(), pods: []*corev1.Pod{pod("p1", "memory=200Gi", on("n"))}}, copies(1, pod("p", "gpu=1 memory=64Gi")),
			[]string{"does-not-fit: 0 of 1", "memory: 8 free on 1 node, but memory is gone: at most 56Gi left, 64Gi wanted [n]"}},
		{"another device", objects{nodes: one()}, copies(1, pod("p", "gpu=1 example.com/nic=1")),
			[]string{"does-not-fit: 0 of 1", "resource: 8 free on 1 node, but example.com/nic is gone: at most 0 left, 1 wanted [n]"}},
		{"storage is gone", objects{nodes: []*corev1.Node{node("n", "gpu=1 ephemeral-storage=100Gi")}}, copies(1, pod("p", "gpu=1 ephemeral-storage=200Gi")),
			[]string{"does-not-fit: 0 of 1", "resource: 1 free on 1 node, but ephemeral-storage is gone: at most 100Gi left, 200Gi wanted [n]"}},
		{"two things at once", objects{nodes: one(cordoned)}, copies(1, pod("p", "gpu=1 memory=300Gi")),
			[]string{"does-not-fit: 0 of 1", "cordoned: 8 free on 1 node, but cordoned (and more is in the way on 1 node) [n]"}},
		{"as many pods as it takes", objects{nodes: []*corev1.Node{node("n", "gpu=8 pods=2")}, pods: []*corev1.Pod{pod("p1", "", on("n"))}}, copies(2, pod("p", "gpu=1")),
			[]string{"does-not-fit: 1 of 2, n ×1", "pods: 7 free on 1 node, but the node has all the pods it takes, 2 [n]"}},
		{"finished pods take nothing", objects{nodes: one(), pods: []*corev1.Pod{pod("p1", "gpu=8 cpu=64", on("n"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}},
			copies(1, pod("p", "gpu=4 cpu=64")), []string{"fits: 1 of 1, n ×1", "cpu: 4 free on 1 node, but CPU is gone: at most 0 left, 64 wanted [n]"}},
		{"host port", objects{nodes: one(), pods: []*corev1.Pod{pod("p1", "", on("n"), port80("10.0.0.1"))}}, copies(1, pod("p", "gpu=8", port80(""))),
			[]string{"does-not-fit: 0 of 1", "host-port: 8 free on 1 node, but host port 80/TCP is taken [n]"}},
		{"host port of another address", objects{nodes: one(), pods: []*corev1.Pod{pod("p1", "", on("n"), port80("10.0.0.1"))}}, copies(2, pod("p", "gpu=1", port80("10.0.0.2"))),
			[]string{"does-not-fit: 1 of 2, n ×1", "host-port: 7 free on 1 node, but host port 80/TCP is taken [n]"}},
		{"a sidecar keeps its host port", objects{nodes: one(), pods: []*corev1.Pod{pod("p1", "", on("n"), first(ptr.To(corev1.ContainerRestartPolicyAlways)))}}, copies(1, pod("p", "gpu=1", port80(""))),
			[]string{"does-not-fit: 0 of 1", "host-port: 8 free on 1 node, but host port 80/TCP is taken [n]"}},
		{"an init step does not", objects{nodes: one(), pods: []*corev1.Pod{pod("p1", "", on("n"), first(nil))}}, copies(1, pod("p", "gpu=8", port80(""))),
			[]string{"fits: 1 of 1, n ×1", "full: none free on 1 node [n]"}},
		{"an init step counts", objects{nodes: one()}, copies(2, pod("p", "gpu=1", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Requests: list("gpu=5")}}}
		})), []string{"does-not-fit: 1 of 2, n ×1", "too-few: 3 free on 1 node, none has 5 [n]"}},
		{"no GPUs at all", objects{nodes: []*corev1.Node{node("n", "cpu=4")}}, copies(3, pod("p", "cpu=2")),
			[]string{"does-not-fit: 2 of 3, n ×2", "cpu: 1 node, but CPU is gone: at most 0 left, 2 wanted [n]"}},
		{"pods on no node", objects{nodes: one(), pods: []*corev1.Pod{pod("p1", "gpu=8"), pod("p2", "gpu=8", on("gone"))}}, copies(1, pod("p", "gpu=1")),
			[]string{"fits: 1 of 1, n ×1"}},
	} {
		t.Run(tc.name, func(t *testing.T) { want(t, tc.objects.ask(t, tc.ask)[0], tc.want...) })
	}
}

// TestRulesOfTopology: what depends on the pods around.
func TestRulesOfTopology(t *testing.T) {
	keyless := append(zones("gpu=1"), node("x", "gpu=1"))
	for _, tc := range []struct {
		name string
		objects
		ask  fit.Question
		want string
	}{
		{"beside a pod", objects{nodes: zones("gpu=1"), pods: []*corev1.Pod{pod("db", "", on("b1"))}}, copies(3, pod("p", "gpu=1", beside("db", "zone"))), "does-not-fit: 2 of 3, b1 ×1, b2 ×1"},
		{"beside nobody", objects{nodes: zones("gpu=1")}, copies(1, pod("p", "gpu=1", beside("db", "zone"))), "does-not-fit: 0 of 1"},
		{"a pod of another namespace is nobody", objects{nodes: zones("gpu=1"), pods: []*corev1.Pod{pod("db", "", on("b1"), elsewhere)}}, copies(1, pod("p", "gpu=1", beside("db", "zone"))), "does-not-fit: 0 of 1"},
		{"unless the term names it", objects{nodes: zones("gpu=1"), pods: []*corev1.Pod{pod("db", "", on("b1"), elsewhere)}}, copies(1, pod("p", "gpu=1", beside("db", "zone"), func(p *corev1.Pod) {
			p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].Namespaces = []string{"other"}
		})), "fits: 1 of 1, b1 ×1"},
		{"or selects it by its name", objects{nodes: zones("gpu=1"), pods: []*corev1.Pod{pod("db", "", on("b1"), elsewhere)}}, copies(1, pod("p", "gpu=1", beside("db", "zone"), func(p *corev1.Pod) {
			p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "other"}}
		})), "fits: 1 of 1, b1 ×1"},
		{"together, where most of them can be", objects{nodes: append(zones("gpu=1"), node("c", "gpu=3", zone("c")))}, copies(4, pod("p", "gpu=1", beside("p", "zone"))), "does-not-fit: 3 of 4, c ×3"},
		{"together with one that is there", objects{nodes: append(zones("gpu=1"), node("c", "gpu=3", zone("c"))), pods: []*corev1.Pod{pod("p1", "", on("a1"))}}, copies(4, pod("p", "gpu=1", beside("p", "zone"))), "does-not-fit: 2 of 4, a1 ×1, a2 ×1"},
		{"not even the first is on a node of no zone", objects{nodes: []*corev1.Node{node("x", "gpu=1")}}, copies(1, pod("p", "gpu=1", beside("p", "zone"))), "does-not-fit: 0 of 1"},
		{"each on a node of its own", objects{nodes: zones("gpu=8")}, copies(5, pod("p", "gpu=1", apart("p", corev1.LabelHostname))), "does-not-fit: 4 of 5, a1 ×1, a2 ×1, b1 ×1, b2 ×1"},
		{"each in a zone of its own", objects{nodes: zones("gpu=8")}, copies(3, pod("p", "gpu=1", apart("p", "zone"))), "does-not-fit: 2 of 3, a1 ×1, b1 ×1"},
		{"a node of no zone is in nobody's way", objects{nodes: keyless}, copies(4, pod("p", "gpu=1", apart("p", "zone"))), "does-not-fit: 3 of 4, a1 ×1, b1 ×1, x ×1"},
		{"away from a pod", objects{nodes: zones("gpu=1"), pods: []*corev1.Pod{pod("db", "", on("a1"))}}, copies(4, pod("p", "gpu=1", apart("db", "zone"))), "does-not-fit: 2 of 4, b1 ×1, b2 ×1"},
		{"kept away by a pod", objects{nodes: zones("gpu=1"), pods: []*corev1.Pod{pod("db", "", on("a1"), apart("p", "zone"))}}, copies(4, pod("p", "gpu=1")), "does-not-fit: 2 of 4, b1 ×1, b2 ×1"},
		{"kept away from its node alone", objects{nodes: zones("gpu=1"), pods: []*corev1.Pod{pod("db", "", on("a1"), apart("p", corev1.LabelHostname))}}, copies(4, pod("p", "gpu=1")), "does-not-fit: 3 of 4, a2 ×1, b1 ×1, b2 ×1"},
		{"spread evenly", objects{nodes: append(zones("gpu=1"), node("c", "gpu=8", zone("c")))}, copies(9, pod("p", "gpu=1", spread("p", "zone", 1))), "does-not-fit: 7 of 9, c ×3, a1 ×1, a2 ×1, b1 ×1, b2 ×1"},
		{"spread with those that are there", objects{nodes: zones("gpu=8"), pods: []*corev1.Pod{pod("p1", "", on("a1")), pod("p2", "", on("a2"))}}, copies(1, pod("p", "gpu=1", spread("p", "zone", 1))), "fits: 1 of 1, b1 ×1"},
		{"those of another namespace do not count", objects{nodes: zones("gpu=8"), pods: []*corev1.Pod{pod("p1", "gpu=1", on("a1"), elsewhere)}}, copies(1, pod("p", "gpu=1", spread("p", "zone", 1))), "fits: 1 of 1, a1 ×1"},
		{"those that are going do not count", objects{nodes: zones("gpu=8"), pods: []*corev1.Pod{pod("p1", "gpu=1", on("a1"), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })}}, copies(1, pod("p", "gpu=1", spread("p", "zone", 1))), "fits: 1 of 1, a1 ×1"},
		{"spread over labelled nodes", objects{nodes: keyless}, copies(5, pod("p", "gpu=1", spread("p", "zone", 9))), "does-not-fit: 4 of 5, a1 ×1, a2 ×1, b1 ×1, b2 ×1"},
		{"nodes that are not selected are no domains", objects{nodes: append(zones("gpu=1"), node("c", "gpu=8", zone("c")))}, copies(5, pod("p", "gpu=1", spread("p", "zone", 1), requiring("zone", corev1.NodeSelectorOpIn, "c"))), "fits: 5 of 5, c ×5"},
		{"unless they are to be", objects{nodes: append(zones("gpu=1"), node("c", "gpu=8", zone("c")))}, copies(5, pod("p", "gpu=1", requiring("zone", corev1.NodeSelectorOpIn, "c"), spread("p", "zone", 1, func(c *corev1.TopologySpreadConstraint) {
			c.NodeAffinityPolicy = ptr.To(corev1.NodeInclusionPolicyIgnore)
		}))), "does-not-fit: 1 of 5, c ×1"},
		{"tainted nodes are domains", objects{nodes: append(zones("gpu=1"), node("c", "gpu=8", zone("c"), tainted("t", corev1.TaintEffectNoSchedule)))}, copies(4, pod("p", "gpu=1", spread("p", "zone", 1))), "does-not-fit: 2 of 4, a1 ×1, b1 ×1"},
		{"unless they are not to be", objects{nodes: append(zones("gpu=1"), node("c", "gpu=8", zone("c"), tainted("t", corev1.TaintEffectNoSchedule)))}, copies(4, pod("p", "gpu=1", spread("p", "zone", 1, func(c *corev1.TopologySpreadConstraint) {
			c.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
		}))), "fits: 4 of 4, a1 ×1, a2 ×1, b1 ×1, b2 ×1"},
		{"too few domains", objects{nodes: zones("gpu=8")}, copies(3, pod("p", "gpu=1", spread("p", "zone", 1, func(c *corev1.TopologySpreadConstraint) { c.MinDomains = ptr.To[int32](3) }))), "does-not-fit: 2 of 3, a1 ×1, b1 ×1"},
		{"a spread that only asks", objects{nodes: zones("gpu=8")}, copies(9, pod("p", "gpu=1", requiring(corev1.LabelHostname, corev1.NodeSelectorOpIn, "a1", "b1"), spread("p", corev1.LabelHostname, 1, func(c *corev1.TopologySpreadConstraint) {
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		}))), "fits: 9 of 9, a1 ×8, b1 ×1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := lines(tc.objects.ask(t, tc.ask)[0])[0]; got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestDevicesOfDRA: what the snapshot has of DRA can be had by name where a class
// offers it, and on a node where a device plugin has none (D2).
func TestDevicesOfDRA(t *testing.T) {
	driver := "gpu.nvidia.com"
	slice := func(on string, devices ...string) *resourcev1.ResourceSlice {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: on}, Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &on, Pool: resourcev1.ResourcePool{Name: on, ResourceSliceCount: 1},
		}}
		for _, d := range devices {
			s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: d})
		}
		return s
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}}},
	}}
	o := objects{
		nodes:   []*corev1.Node{node("plugin", "gpu=1"), node("dra", ""), node("both", "gpu=2")},
		classes: []*resourcev1.DeviceClass{class},
		slices:  []*resourcev1.ResourceSlice{slice("dra", "g0", "g1", "g2"), slice("both", "g0", "g1")},
	}
	// Of GPUs alone every row counts, as in the snapshot.
	want(t, o.ask(t, fit.GPUs(count.NVIDIA, 1, 9))[0], "does-not-fit: 8 of 9, both ×4, dra ×3, plugin ×1", "full: none free on 3 nodes [both dra plugin]")
	if got := o.count().Of(count.NVIDIA).Fit.Sizes[0]; got.Placeable != 8 {
		t.Errorf("the snapshot has %+v", got)
	}
	p := copies(9, pod("p", "gpu=1"))
	want(t, o.ask(t, p)[0], "does-not-fit: 3 of 9, both ×2, plugin ×1",
		"full: none free on 2 nodes [both plugin]",
		"not-offered: 3 free on 1 node, but no DeviceClass offers devices of DRA as nvidia.com/gpu [dra]")
	class.Spec.ExtendedResourceName = ptr.To(count.NVIDIA)
	want(t, o.ask(t, p)[0], "does-not-fit: 6 of 9, dra ×3, both ×2, plugin ×1", "full: none free on 3 nodes [both dra plugin]")
}

// TestClaims: of a pod with a claim one can only ever say that it does not fit.
func TestClaims(t *testing.T) {
	o := objects{nodes: []*corev1.Node{node("n", "cpu=4")}}
	p := pod("p", "cpu=2", func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus"}} })
	a := o.ask(t, copies(1, p))[0]
	if a.Verdict != fit.Unknown {
		t.Errorf("the verdict is %s", a.Verdict)
	}
	if diff := cmp.Diff([]string{"claims for devices are not judged: gpus"}, a.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if a := o.ask(t, copies(3, p))[0]; a.Verdict != fit.DoesNotFit {
		t.Errorf("the verdict on too many is %s", a.Verdict)
	}
	implicit := pod("p", "cpu=2 deviceclass.resource.kubernetes.io/gpu.nvidia.com=1")
	if a := o.ask(t, copies(1, implicit))[0]; a.Verdict != fit.Unknown || a.Notes[0] != "claims for devices are not judged: gpu.nvidia.com" {
		t.Errorf("a class by its implicit name: %s, %q", a.Verdict, a.Notes)
	}

	nic := copies(2, pod("p", "example.com/nic=1"))
	o.nodes = append(o.nodes, node("m", "example.com/nic=1", cordoned))
	if a := o.ask(t, nic)[0]; a.Verdict != fit.DoesNotFit {
		t.Errorf("a resource that nobody offers: %s", a.Verdict)
	}
	o.classes = []*resourcev1.DeviceClass{{Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To("example.com/nic")}}}
	if a := o.ask(t, nic)[0]; a.Verdict != fit.Unknown || a.Placements[0].Node != "n" || a.Notes[0] != "claims for devices are not judged: example.com/nic" {
		t.Errorf("a resource of which a node may have devices of DRA: %s, %q", a.Verdict, a.Notes)
	}
}

// TestOneAfterAnother: a question finds what the ones before it have left.
func TestOneAfterAnother(t *testing.T) {
	o := objects{nodes: []*corev1.Node{node("a", "gpu=8"), node("b", "gpu=4")}}
	answers := o.ask(t, copies(3, pod("small", "gpu=1", apart("big", corev1.LabelHostname))), copies(1, pod("big", "gpu=8")), copies(1, pod("big", "gpu=1")))
	want(t, answers[0], "fits: 3 of 3, b ×3")
	want(t, answers[1], "fits: 1 of 1, a ×1", "full: none free on 1 node [a]", "too-few: 1 free on 1 node, none has 8 [b]")
	want(t, answers[2], "does-not-fit: 0 of 1",
		"anti-affinity-of-others: 1 free on 1 node, but the anti-affinity of a pod that is there keeps it away [b]",
		"full: none free on 1 node [a]")
}
