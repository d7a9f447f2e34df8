package count

import (
	"maps"
	"slices"
)

// Bands of priority, lowest first. The third ends where Kubernetes ends what
// users may define; above lie system-cluster-critical and system-node-critical.
const (
	bandNegative = "negative" // filler that anything may preempt
	bandDefault  = "default"  // 0, or no priority at all
	bandHigh     = "high"
	bandSystem   = "system"
	bandUnknown  = "unknown" // devices of claims that pods share or have made themselves

	highestUserPriority = 1_000_000_000
)

var bands = []string{bandNegative, bandDefault, bandHigh, bandSystem, bandUnknown}

func bandOf(priority int32) string {
	switch {
	case priority < 0:
		return bandNegative
	case priority == 0:
		return bandDefault
	case priority <= highestUserPriority:
		return bandHigh
	}
	return bandSystem
}

// holds books a bound pod's devices on its namespace and band.
func (s *sum) holds(p *Pod, devices int64) {
	for _, share := range s.sharesOf(p) {
		share.Requested = add(share.Requested, devices)
	}
}

// waits books a waiting pod's devices on its namespace and band, its reason, its
// shape and its models.
func (s *sum) waits(p *Pod, devices int64) {
	for _, share := range s.sharesOf(p) {
		share.Pending = add(share.Pending, devices)
	}
	reason := s.reasons[p.Wait]
	if reason == nil {
		reason = &Reason{Wait: p.Wait}
		s.reasons[p.Wait] = reason
	}
	reason.Devices = add(reason.Devices, devices)
	reason.Pods++
	s.shapes[devices]++
	if models := p.Models(s.Resource); len(models) > 0 {
		s.choices = append(s.choices, choice{models, devices})
	} else {
		s.anyModel = add(s.anyModel, devices)
	}
}

func (s *sum) sharesOf(p *Pod) [2]*Share {
	return [2]*Share{share(s.namespaces, p.Namespace()), share(s.priorities, bandOf(p.Priority))}
}

func share(shares map[string]*Share, name string) *Share {
	if shares[name] == nil {
		shares[name] = &Share{Name: name}
	}
	return shares[name]
}

// demand fills in the waiting demand.
func (s *sum) demand(p *Pending) {
	for _, wait := range Waits {
		if reason := s.reasons[wait]; reason != nil {
			p.Devices = add(p.Devices, reason.Devices)
			p.Pods += reason.Pods
			p.Reasons = append(p.Reasons, *reason)
		}
	}
	for _, devices := range slices.Sorted(maps.Keys(s.shapes)) {
		p.Shapes = append(p.Shapes, Shape{Devices: devices, Pods: s.shapes[devices]})
	}
}

func sortedShares(shares map[string]*Share) (out []Share) {
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		out = append(out, *shares[name])
	}
	return out
}

func bandShares(shares map[string]*Share) (out []Share) {
	for _, band := range bands {
		if share := shares[band]; share != nil {
			out = append(out, *share)
		}
	}
	return out
}
