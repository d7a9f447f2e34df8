package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// planted are counters with a mistake each, by the rule they break: what other
// tools do, and what ours could do after an unlucky change. A judge that does not
// find them would find nothing.
var planted = map[string]Counter{
	"R1 the phase is not looked at":        misread(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }),
	"R1 only Running counts":               misread(func(p *corev1.Pod) { finishIf(p, p.Status.Phase != corev1.PodRunning) }),
	"R1 Unknown has finished":              misread(func(p *corev1.Pod) { finishIf(p, p.Status.Phase == corev1.PodUnknown) }),
	"R2 a pod being deleted is gone":       misread(func(p *corev1.Pod) { finishIf(p, p.DeletionTimestamp != nil) }),
	"R3 pods of missing nodes are dropped": misread(func(p *corev1.Pod) { finishIf(p, strings.HasPrefix(p.Spec.NodeName, gonePrefix)) }),
	"R5 a nominated pod is bound":          misread(nominatedIsBound),
	"R6 overhead is forgotten":             misread(func(p *corev1.Pod) { p.Spec.Overhead = nil }),
	"R6 node-allocatable claims are added": misread(claimsAdd),
	"R7 init containers are summed":        misread(initsAdd),
	"R7 init containers are forgotten":     misread(func(p *corev1.Pod) { p.Spec.InitContainers = nil }),
	"R7 a sidecar is an init step": misread(func(p *corev1.Pod) {
		for i := range p.Spec.InitContainers {
			p.Spec.InitContainers[i].RestartPolicy = nil
		}
	}),
	"R7 sidecars come first": misread(sidecarsFirst),
	"R8 the status is not looked at": misread(func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: p.Status.Phase}
	}),
	"R8 what is in effect is not looked at": misread(func(p *corev1.Pod) {
		p.Status.Resources = nil
		for _, list := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
			for i := range list {
				list[i].Resources = nil
			}
		}
	}),
	"R8 an infeasible resize counts":   misread(func(p *corev1.Pod) { p.Status.Conditions = nil }),
	"R8 a deferred resize does not":    misread(deferredIsInfeasible),
	"R8 the pod's own status is not":   misread(func(p *corev1.Pod) { p.Status.AllocatedResources = nil }),
	"R9 a pod-level GPU counts":        misread(podLevelCounts),
	"R10 limits stand in for requests": misread(limitsCount),
	"R11 fractions are rounded down":   misread(roundDown),
	"N6 whatever starts like a GPU":    renamed(lookAlikes[0], gpus[0]),
	"N6 MIG is not known":              renamed(gpus[2], "example.com/mig"),
	"N5 MIG is a whole GPU":            renamed(gpus[3], gpus[0]),
}

// TestPlantedMistakesAreFound, each within a few thousand pods, and shrunk to a pod
// that fits a screen.
func TestPlantedMistakesAreFound(t *testing.T) {
	const pods, lines = 2000, 30
	for mistake, counter := range planted {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			report := run(t, Options{Pods: pods, Workers: 1, Counter: counter})
			if report.Mismatches == 0 {
				t.Fatalf("seed %d: not found among %d pods", seed, pods)
			}
			for _, f := range report.Found {
				if len(f.Pods) != 1 || len(f.From) != 1 {
					t.Fatalf("shrunk to %d pods, from %v; want 1", len(f.Pods), f.From)
				}
				text, err := podYAML(f.Pods[0])
				if err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(text, "\n"); n > lines {
					t.Errorf("shrunk to %d lines, want at most %d:\n%s", n, lines, text)
				}
				if _, honest := compare(f.Pods, Ours); len(honest) > 0 {
					t.Errorf("the counter without the mistake differs as well: %v", honest)
				}
				if f.Scheduler == f.Ours {
					t.Errorf("both sides say %d", f.Ours)
				}
			}
			t.Logf("%d of %d numbers differ; %s", report.Mismatches, report.Numbers, oneLine(report.Found[0]))
		})
	}
}

// TestAMistakeThatTakesTwoPods keeps two, not one and not sixty-four.
func TestAMistakeThatTakesTwoPods(t *testing.T) {
	onePodANode := func(nodes []*corev1.Node, pods []*corev1.Pod) Counts {
		last := map[string]int{}
		for i, pod := range pods {
			last[pod.Spec.NodeName] = i
		}
		var kept []*corev1.Pod
		for i, pod := range pods {
			if last[pod.Spec.NodeName] == i {
				kept = append(kept, pod)
			}
		}
		return Ours(nodes, kept)
	}
	report := run(t, Options{Pods: 200, Counter: onePodANode})
	if report.Mismatches == 0 || len(report.Found[0].Pods) != 2 {
		t.Errorf("seed %d: %d mismatches, found %+v; want two pods", seed, report.Mismatches, report.Found)
	}
}

func oneLine(f Finding) string {
	text, _ := podYAML(f.Pods[0])
	return fmt.Sprintf("%d instead of %d for %d lines", f.Ours, f.Scheduler, strings.Count(text, "\n"))
}

// misread counts right, but pods that are not as they were written.
func misread(change func(*corev1.Pod)) Counter {
	return func(nodes []*corev1.Node, pods []*corev1.Pod) Counts {
		changed := make([]*corev1.Pod, len(pods))
		for i, pod := range pods {
			changed[i] = pod.DeepCopy()
			change(changed[i])
		}
		return Ours(nodes, changed)
	}
}

func renamed(from, to corev1.ResourceName) Counter {
	return misread(func(p *corev1.Pod) {
		for _, list := range requests(p) {
			if q, ok := list[from]; ok {
				sum := list[to]
				sum.Add(q)
				list[to] = sum
				delete(list, from)
			}
		}
	})
}

func finishIf(p *corev1.Pod, finished bool) {
	if finished {
		p.Status.Phase = corev1.PodFailed
	}
}

func nominatedIsBound(p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		p.Spec.NodeName = p.Status.NominatedNodeName
	}
}

func claimsAdd(p *corev1.Pod) {
	for _, claim := range p.Status.NodeAllocatableResourceClaimStatuses {
		for _, mapping := range claim.Mapping {
			if mapping.Quantity == nil {
				continue // shrunk away
			}
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{mapping.Name: *mapping.Quantity},
			}})
		}
	}
}

func initsAdd(p *corev1.Pod) {
	p.Spec.Containers = append(p.Spec.Containers, p.Spec.InitContainers...)
	p.Spec.InitContainers = nil
}

func sidecarsFirst(p *corev1.Pod) {
	var sidecars, steps []corev1.Container
	for _, c := range p.Spec.InitContainers {
		if isSidecar(&c) {
			sidecars = append(sidecars, c)
		} else {
			steps = append(steps, c)
		}
	}
	p.Spec.InitContainers = slices.Concat(sidecars, steps)
}

func deferredIsInfeasible(p *corev1.Pod) {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Reason == corev1.PodReasonDeferred {
			p.Status.Conditions[i].Reason = corev1.PodReasonInfeasible
		}
	}
}

func podLevelCounts(p *corev1.Pod) {
	if p.Spec.Resources == nil || !asksGPU(p.Spec.Resources.Requests) {
		return
	}
	p.Spec.Containers = []corev1.Container{{Name: "pod", Resources: corev1.ResourceRequirements{Requests: p.Spec.Resources.Requests}}}
	p.Spec.InitContainers = nil
}

func limitsCount(p *corev1.Pod) {
	for i := range p.Spec.Containers {
		if r := &p.Spec.Containers[i].Resources; r.Requests == nil {
			r.Requests = r.Limits
		}
	}
}

func roundDown(p *corev1.Pod) {
	for _, list := range requests(p) {
		for name, q := range list {
			if milli := q.MilliValue(); milli > 0 && milli < 1e9 && milli%1000 != 0 {
				list[name] = *resource.NewQuantity(milli/1000, q.Format)
			}
		}
	}
}
