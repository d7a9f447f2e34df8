package diff

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// DRAObjects is what an API server holds.
type DRAObjects struct {
	When    string
	Nodes   []corev1.Node
	Pods    []corev1.Pod
	Classes []resourcev1.DeviceClass
	Slices  []resourcev1.ResourceSlice
	Claims  []resourcev1.ResourceClaim
}

// DRAKey says what numbers are about. Of the cluster's total, Node and Source are "".
type DRAKey struct {
	Node     string       `json:"node,omitempty"`
	Resource string       `json:"resource"`
	Source   count.Source `json:"source,omitempty"`
}

// DRANumbers is what is compared. Pending is of the total only.
type DRANumbers struct {
	Requested   int64 `json:"requested"`
	Allocatable int64 `json:"allocatable"`
	Free        int64 `json:"free"`
	Pending     int64 `json:"pending"`
}

// DRACounts has an entry for each row, and the totals. What is missing is 0.
type DRACounts map[DRAKey]DRANumbers

func (c DRACounts) add(key DRAKey, n DRANumbers) {
	sum := c[key]
	c[key] = DRANumbers{sum.Requested + n.Requested, sum.Allocatable + n.Allocatable, sum.Free + n.Free, sum.Pending + n.Pending}
}

// DRACounter counts a cluster.
type DRACounter func(*DRAObjects) DRACounts

// DRAOurs counts as the controller does.
func DRAOurs(o *DRAObjects) DRACounts {
	dra := &count.DRA{State: count.DRASynced, Resources: count.DefaultDRAClasses()}
	w := count.World{NodesKnown: true, DRA: dra}
	for i := range o.Nodes {
		record := count.ReadNode(&o.Nodes[i], names)
		w.Nodes = append(w.Nodes, &record)
	}
	for i := range o.Pods {
		record := count.ReadPod(&o.Pods[i], names)
		w.Pods = append(w.Pods, &record)
	}
	for i := range o.Classes {
		record := count.ReadDeviceClass(&o.Classes[i], names)
		dra.Classes = append(dra.Classes, &record)
	}
	for i := range o.Slices {
		record := count.ReadResourceSlice(&o.Slices[i])
		dra.Slices = append(dra.Slices, &record)
	}
	for i := range o.Claims {
		record := count.ReadResourceClaim(&o.Claims[i])
		dra.Claims = append(dra.Claims, &record)
	}
	snap := count.Take(w)
	counts := DRACounts{}
	for i := range snap.Rows {
		r := &snap.Rows[i]
		counts.add(DRAKey{r.Node, r.Resource, r.Source}, DRANumbers{Requested: r.Requested, Allocatable: r.Allocatable, Free: r.Free})
	}
	for i := range snap.Summaries {
		s := &snap.Summaries[i]
		counts.add(DRAKey{Resource: s.Resource}, DRANumbers{s.Requested, s.Allocatable, s.Free, s.Pending.Devices})
	}
	return counts
}

// device is a device's full name.
type device struct{ driver, pool, name string }

// draRecount counts the same from the objects, knowing nothing of records, classes
// and caches: here every pool is a node's, and every device is a GPU. It returns how
// many devices claims hold as well.
func draRecount(o *DRAObjects) (DRACounts, int, error) {
	held := draHeld(o)
	offered := draOffered(o)
	counts := DRACounts{}
	for d := range held {
		if _, ok := offered[d]; !ok {
			return nil, 0, fmt.Errorf("a claim holds %s of pool %s, which is in no complete pool: there is nothing to judge by", d.name, d.pool)
		}
	}
	for d, where := range offered {
		n := DRANumbers{}
		if held[d] {
			n.Requested = 1
		}
		if !where.tainted {
			n.Allocatable, n.Free = 1, 1-n.Requested
		}
		counts.add(DRAKey{where.node, count.NVIDIA, count.DynamicResources}, n)
	}
	draPlugins(o, counts)
	total := DRANumbers{Pending: draPending(o)}
	for _, n := range counts {
		total = DRANumbers{total.Requested + n.Requested, total.Allocatable + n.Allocatable, total.Free + n.Free, total.Pending}
	}
	counts[DRAKey{Resource: count.NVIDIA}] = total
	return counts, len(held), nil
}

// draHeld is the devices that claims hold, each once. Administration holds none.
func draHeld(o *DRAObjects) map[device]bool {
	held := map[device]bool{}
	for i := range o.Claims {
		allocation := o.Claims[i].Status.Allocation
		if allocation == nil {
			continue
		}
		for _, r := range allocation.Devices.Results {
			if r.AdminAccess == nil || !*r.AdminAccess {
				held[device{r.Driver, r.Pool, r.Device}] = true
			}
		}
	}
	return held
}

type place struct {
	node    string
	tainted bool
}

// draOffered is the devices of the pools' newest generations, of which all slices
// are there.
func draOffered(o *DRAObjects) map[device]place {
	type pool struct{ driver, name string }
	newest := map[pool][]*resourcev1.ResourceSlice{}
	for i := range o.Slices {
		s := &o.Slices[i]
		key := pool{s.Spec.Driver, s.Spec.Pool.Name}
		switch have := newest[key]; {
		case len(have) == 0 || have[0].Spec.Pool.Generation < s.Spec.Pool.Generation:
			newest[key] = []*resourcev1.ResourceSlice{s}
		case have[0].Spec.Pool.Generation == s.Spec.Pool.Generation:
			newest[key] = append(have, s)
		}
	}
	offered := map[device]place{}
	for key, slices := range newest {
		if int64(len(slices)) != slices[0].Spec.Pool.ResourceSliceCount {
			continue
		}
		for _, s := range slices {
			for i := range s.Spec.Devices {
				d := &s.Spec.Devices[i]
				offered[device{key.driver, key.name, d.Name}] = place{*s.Spec.NodeName, len(d.Taints) > 0}
			}
		}
	}
	return offered
}

// draPlugins counts what device plugins have. The scheduler's NodeInfo of the pods
// that it has not served by DRA is what is requested; that of all pods is what it
// would fit the next one beside.
func draPlugins(o *DRAObjects, counts DRACounts) {
	for i := range o.Nodes {
		node := &o.Nodes[i]
		all, own := framework.NewNodeInfo(), framework.NewNodeInfo()
		for j := range o.Pods {
			pod := &o.Pods[j]
			if pod.Spec.NodeName != node.Name || !reachesScheduler(pod) {
				continue
			}
			all.AddPod(pod)
			if pod.Status.ExtendedResourceClaimStatus == nil {
				own.AddPod(pod)
			}
		}
		q := node.Status.Allocatable[count.NVIDIA]
		counts[DRAKey{node.Name, count.NVIDIA, count.DevicePlugin}] = DRANumbers{
			Requested:   own.Requested.ScalarResources[count.NVIDIA],
			Allocatable: q.Value(),
			Free:        max(0, q.Value()-all.Requested.ScalarResources[count.NVIDIA]),
		}
	}
}

// draPending is what the pods without a node would be charged.
func draPending(o *DRAObjects) int64 {
	info := framework.NewNodeInfo()
	for i := range o.Pods {
		if pod := &o.Pods[i]; pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
			info.AddPod(pod)
		}
	}
	return info.Requested.ScalarResources[count.NVIDIA]
}

// DRAMismatch is a number on which the two sides do not agree.
type DRAMismatch struct {
	When string `json:"when"`
	DRAKey
	Number    string `json:"number"`
	Scheduler int64  `json:"scheduler"`
	Ours      int64  `json:"ours"`
}

// compareDRA returns how many rows were compared and which numbers differ, in a
// fixed order. Rows without a number on either side are none.
func compareDRA(want, got DRACounts) (rows int, out []DRAMismatch) {
	keys := map[DRAKey]bool{}
	for _, side := range []DRACounts{want, got} {
		for key, n := range side {
			if n != (DRANumbers{}) {
				keys[key] = true
			}
		}
	}
	for key := range keys {
		w, g := want[key], got[key]
		if key.Node != "" {
			rows++
		}
		for _, n := range []struct {
			name            string
			scheduler, ours int64
		}{
			{"requested", w.Requested, g.Requested}, {"allocatable", w.Allocatable, g.Allocatable},
			{"free", w.Free, g.Free}, {"pending", w.Pending, g.Pending},
		} {
			if n.scheduler != n.ours {
				out = append(out, DRAMismatch{DRAKey: key, Number: n.name, Scheduler: n.scheduler, Ours: n.ours})
			}
		}
	}
	slices.SortFunc(out, func(a, b DRAMismatch) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Number, b.Number))
	})
	return rows, out
}
