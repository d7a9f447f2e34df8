package count

import (
	"cmp"
	"slices"
	"strings"
)

// Ask is a number of equal pods that want devices.
type Ask struct {
	Resource string
	// Model is the product they must have, "" for any.
	Model string
	// Devices is what each pod asks for, at least 1.
	Devices int64
	// Pods is how many there are.
	Pods int64
}

// Placement says what would become of an Ask if devices were all that counts.
type Placement struct {
	// Placeable is how many pods of this size could start now, and Stranded how many
	// free devices would then be left over, as in Size. Neither depends on Ask.Pods.
	Placeable int64
	Stranded  int64
	// Places is where the pods would go, those nodes first on which the least is left
	// over. The scheduler may choose others.
	Places []Place
	// Obstacles is why the other nodes take none, in a fixed order.
	Obstacles []Obstacle
}

// Place is a number of pods on a node.
type Place struct {
	Node  string `json:"node"`
	Model string `json:"model"`
	Pods  int64  `json:"pods"`
}

// Obstacle is a reason why nodes take no pod of an Ask.
type Obstacle struct {
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
	Free   int64  `json:"free"`
}

// Obstacles in the order in which they are shown. Free devices that cannot be had come
// first, with why in the place of the star.
const (
	obstacleShut  = "free, but *"
	obstacleFew   = "too few free"
	obstacleFull  = "all in use"
	obstacleNone  = "no healthy devices"
	obstacleModel = "another model"
)

var obstacleOrder = []string{obstacleShut, obstacleFew, obstacleFull, obstacleNone, obstacleModel}

// Place says where pods would fit. It goes by the rows alone, like Fit: a pod gets all
// its devices from one of them.
func (s *Snapshot) Place(a Ask) Placement {
	var p Placement
	var fitting []*Row
	obstacles := obstacles{}
	free := int64(0)
	for i := range s.Rows {
		row := &s.Rows[i]
		switch {
		case row.Resource != a.Resource:
			continue
		case a.Model != "" && row.Model != a.Model:
			obstacles.include(obstacleModel, row)
			continue
		case row.UsableFree >= a.Devices:
			fitting = append(fitting, row)
			p.Placeable = add(p.Placeable, row.UsableFree/a.Devices)
		default:
			obstacles.include(row.obstacle(a.Devices), row)
		}
		free = add(free, row.Free)
	}
	p.Stranded = max(0, free-mul(a.Devices, p.Placeable))
	p.Obstacles = obstacles.sorted()
	slices.SortStableFunc(fitting, func(x, y *Row) int {
		return cmp.Or(cmp.Compare(x.UsableFree%a.Devices, y.UsableFree%a.Devices), cmp.Compare(x.UsableFree, y.UsableFree))
	})
	left := a.Pods
	for _, row := range fitting {
		pods := min(left, row.UsableFree/a.Devices)
		if pods <= 0 {
			break
		}
		p.Places = append(p.Places, Place{Node: row.Node, Model: row.Model, Pods: pods})
		left -= pods
	}
	return p
}

// obstacle is why a row has no room for a pod.
func (r *Row) obstacle(devices int64) string {
	switch {
	case r.Free >= devices:
		words := make([]string, 0, len(r.States))
		for _, state := range r.States {
			words = append(words, state.Words())
		}
		return strings.Replace(obstacleShut, "*", strings.Join(words, " and "), 1)
	case r.Free > 0:
		return obstacleFew
	case r.Allocatable == 0:
		return obstacleNone
	}
	return obstacleFull
}

// Words is the state as people say it.
func (s State) Words() string {
	switch s {
	case NotReady:
		return "not ready"
	case SchedulingDisabled:
		return "cordoned"
	case Tainted:
		return "tainted"
	}
	return string(s)
}

// obstacles collects nodes by the reason.
type obstacles map[string]*obstacle

type obstacle struct {
	Obstacle
	last string // the node of the row before
}

func (o obstacles) include(reason string, row *Row) {
	in := o[reason]
	if in == nil {
		in = &obstacle{Obstacle: Obstacle{Reason: reason}}
		o[reason] = in
	}
	if row.Node != in.last {
		in.Nodes++
		in.last = row.Node
	}
	in.Free = add(in.Free, row.Free)
}

func (o obstacles) sorted() (out []Obstacle) {
	for _, in := range o {
		out = append(out, in.Obstacle)
	}
	rank := func(o Obstacle) int {
		return slices.IndexFunc(obstacleOrder, func(of string) bool {
			before, _, star := strings.Cut(of, "*")
			return o.Reason == of || star && strings.HasPrefix(o.Reason, before)
		})
	}
	slices.SortFunc(out, func(a, b Obstacle) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Free, a.Free), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}
