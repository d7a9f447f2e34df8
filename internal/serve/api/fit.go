package api

import (
	"net/http"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// The most that can be asked for. A pod of more devices than any node has gets an
// answer too.
const (
	maxDevices = 1_000_000
	maxPods    = 10_000
)

type fitDocument struct {
	envelope
	Resource string `json:"resource"`
	Model    string `json:"model,omitempty"`
	GPUs     int64  `json:"gpus"`
	Pods     int64  `json:"pods"`
	// Fits is whether all of the pods could start now.
	Fits      bool             `json:"fits"`
	Placeable int64            `json:"placeable"`
	Stranded  int64            `json:"stranded"`
	Places    []count.Place    `json:"places"`
	Obstacles []count.Obstacle `json:"obstacles"`
}

// ReadAsk reads what is to be fitted: one pod of one device of NVIDIA's resource
// unless the query says more.
func ReadAsk(p *Parameters) count.Ask {
	a := count.Ask{
		Resource: p.Text("resource"), Model: p.Text("model"),
		Devices: p.Number("gpus", 1, 1, maxDevices), Pods: p.Number("pods", 1, 1, maxPods),
	}
	if a.Resource == "" {
		a.Resource = count.NVIDIA
	}
	return a
}

// NodesUnknown is why nothing can be said of what is free.
const NodesUnknown = "nobody knows what is free: the controller does not watch nodes (--watch-nodes=false)"

func fit(v View, p *Parameters) any {
	a := ReadAsk(p)
	if !v.Snapshot.NodesKnown {
		return refusal{http.StatusNotImplemented, NodesUnknown}
	}
	placement := v.Snapshot.Place(a)
	lists(&placement.Places)
	lists(&placement.Obstacles)
	return fitDocument{
		envelope: v.envelope(), Resource: a.Resource, Model: a.Model, GPUs: a.Devices, Pods: a.Pods,
		Fits: placement.Placeable >= a.Pods, Placeable: placement.Placeable, Stranded: placement.Stranded,
		Places: placement.Places, Obstacles: placement.Obstacles,
	}
}
