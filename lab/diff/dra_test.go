package diff

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// plantedDRA is mistakes in counting. Each changes what our side is shown, or what it
// says.
var plantedDRA = map[string]func(*DRAObjects) DRACounts{
	"D2 the spec of a pod that DRA serves is added": func(o *DRAObjects) DRACounts {
		counts := DRAOurs(o)
		for i := range o.Pods {
			if pod := &o.Pods[i]; pod.Status.ExtendedResourceClaimStatus != nil {
				record := count.ReadPod(pod, names)
				counts.add(DRAKey{pod.Spec.NodeName, count.NVIDIA, count.DynamicResources}, DRANumbers{Requested: record.Requests.Of(count.NVIDIA)})
			}
		}
		return counts
	},
	"D3 every result of an allocation is a device": func(o *DRAObjects) DRACounts {
		return requestedOf(o, func(*resourcev1.ResourceClaim) int64 { return 1 })
	},
	"D3 every pod with a claim has its devices": func(o *DRAObjects) DRACounts {
		return requestedOf(o, func(c *resourcev1.ResourceClaim) int64 { return int64(len(c.Status.ReservedFor)) })
	},
	"D2 the note of the scheduler is not read": func(o *DRAObjects) DRACounts {
		return DRAOurs(o.changed(func(c *DRAObjects) {
			for i := range c.Pods {
				c.Pods[i].Status.ExtendedResourceClaimStatus = nil
			}
		}))
	},
	"D4 taints are not looked at": func(o *DRAObjects) DRACounts {
		return DRAOurs(o.changed(func(c *DRAObjects) {
			for i := range c.Slices {
				for j := range c.Slices[i].Spec.Devices {
					c.Slices[i].Spec.Devices[j].Taints = nil
				}
			}
		}))
	},
	"D4 generations are not looked at": func(o *DRAObjects) DRACounts {
		return DRAOurs(o.changed(func(c *DRAObjects) {
			for i := range c.Slices {
				c.Slices[i].Spec.Pool.Name += c.Slices[i].Name[len(c.Slices[i].Name)-1:]
				c.Slices[i].Spec.Pool.ResourceSliceCount = 1
			}
		}))
	},
}

// requestedOf adds up results of allocations instead of devices.
func requestedOf(o *DRAObjects, weight func(*resourcev1.ResourceClaim) int64) DRACounts {
	counts := DRAOurs(o)
	for key, n := range counts {
		if key.Source == count.DynamicResources {
			n.Requested = 0
			counts[key] = n
		}
	}
	for i := range o.Claims {
		if a := o.Claims[i].Status.Allocation; a != nil {
			for _, r := range a.Devices.Results {
				if r.AdminAccess == nil {
					counts.add(DRAKey{r.Pool, count.NVIDIA, count.DynamicResources}, DRANumbers{Requested: weight(&o.Claims[i])})
				}
			}
		}
	}
	return counts
}

// changed returns a copy with a change.
func (o *DRAObjects) changed(change func(*DRAObjects)) *DRAObjects {
	c := &DRAObjects{Classes: o.Classes, Nodes: o.Nodes}
	for i := range o.Pods {
		c.Pods = append(c.Pods, *o.Pods[i].DeepCopy())
	}
	for i := range o.Slices {
		c.Slices = append(c.Slices, *o.Slices[i].DeepCopy())
	}
	for i := range o.Claims {
		c.Claims = append(c.Claims, *o.Claims[i].DeepCopy())
	}
	change(c)
	return c
}

// TestDRA is the short form of lab diff --dra, and judges the judge as well: on what
// the scheduler has allocated, each mistake has to be found.
func TestDRA(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane: not with -short")
	}
	p, err := plane.Start(t.Context(), plane.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	o := DRAOptions{Nodes: 8, Pods: 40, Seed: seed, Progress: os.Stderr}
	states, err := allocateDRA(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	report := judged(t, states, o)
	var out strings.Builder
	_ = report.Write(&out, Table)
	t.Log(out.String())
	if report.Mismatches != 0 || report.States != 3 || report.Rows < 24 || report.DevicesAllocated < 5 || report.Bound < 10 {
		t.Error("mismatches, or too little of something to show anything")
	}
	for name, counter := range plantedDRA {
		o.Counter = counter
		if report := judged(t, states, o); report.Mismatches == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}

func judged(t *testing.T, states []*DRAObjects, o DRAOptions) *DRAReport {
	t.Helper()
	report, err := judgeDRA(states, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestDRAPlanIsTheSeeds(t *testing.T) {
	all := cmp.AllowUnexported(draPlan{})
	if diff := cmp.Diff(planDRA(seed, 20, 100), planDRA(seed, 20, 100), all); diff != "" {
		t.Errorf("the same seed makes another plan:\n%s", diff)
	}
	plan := planDRA(seed, 20, 101)
	if cmp.Equal(plan, planDRA(seed+1, 20, 101), all) {
		t.Error("another seed makes the same plan")
	}
	if len(plan.nodes) != 20 || len(plan.pods) != 101 || len(plan.deleted) == 0 || len(plan.claims) == 0 {
		t.Errorf("%d nodes, %d pods, %d of them deleted, %d claims", len(plan.nodes), len(plan.pods), len(plan.deleted), len(plan.claims))
	}
	if !slices.ContainsFunc(plan.slices, func(s *resourcev1.ResourceSlice) bool { return s.Spec.Pool.Generation > 1 }) {
		t.Error("no pool has an old generation")
	}
}

func TestDRAMismatchesAreNamed(t *testing.T) {
	key := DRAKey{"node-1", count.NVIDIA, count.DynamicResources}
	rows, found := compareDRA(DRACounts{key: {Requested: 1, Allocatable: 4, Free: 3}}, DRACounts{key: {Requested: 2, Allocatable: 4, Free: -1}})
	for i := range found {
		found[i].When = "few pods"
	}
	report := DRAReport{Rows: rows, States: 1, Found: found, Mismatches: len(found)}
	var out strings.Builder
	if err := report.Write(&out, Table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Mismatch with few pods: nvidia.com/gpu on node-1, source dra: requested is 1, we say 2\n",
		"Mismatch with few pods: nvidia.com/gpu on node-1, source dra: free is 3, we say -1\n",
		"1 rows compared in 1 settled states, 2 mismatches",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestDRAOptions(t *testing.T) {
	for flag, o := range map[string]DRAOptions{"--pods": {Nodes: 1}, "--nodes": {Pods: 1}} {
		if _, err := RunDRA(t.Context(), o); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%+v: %v; want %s refused", o, err, flag)
		}
	}
}
