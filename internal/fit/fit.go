// Package fit answers whether copies of a pod fit into a cluster now, on which nodes,
// and if they do not, why, node by node and in sum.
//
// It is pure, like internal/count: facts and questions in, answers out. How many
// devices are free where is not found out here but taken from a Snapshot. All else
// follows the filters of kube-scheduler, with the libraries that it uses itself:
// nodeaffinity and resource of k8s.io/component-helpers, and k8s.io/kube-scheduler's
// framework. docs/fit.md says what is judged and what is not.
package fit

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Question is whether so many copies of a pod fit.
type Question struct {
	// Name is whose pods they are, as in deployment/train.
	Name   string
	Copies int64
	// Models are the models that the GPUs may be of, none for any.
	Models []string
	// Pod is the pod as an API server would store it. It is nil if the question is
	// about GPUs alone; then Resource and Devices say which, and how many a copy
	// takes.
	Pod      *corev1.Pod
	Resource string
	Devices  int64
	// Notes are what the answer does not take into account of this pod.
	Notes []string
}

// GPUs asks for copies that need so many devices each, and nothing else. The answer is
// then what the Snapshot's Fit says for pods of this size (N3 of docs/counting.md).
func GPUs(resource string, devices, copies int64) Question {
	return Question{Name: "pods", Copies: copies, Resource: resource, Devices: devices}
}

// Verdict is the answer in a word.
type Verdict string

// The verdicts.
const (
	Fits       Verdict = "fits"
	DoesNotFit Verdict = "does-not-fit"
	// Unknown: the pod asks for something that cannot be judged, and without it all
	// copies would fit.
	Unknown Verdict = "unknown"
)

// Answer is what there is to say to a Question.
type Answer struct {
	Question string  `json:"question"`
	Verdict  Verdict `json:"verdict"`
	// Copies is how many were asked for, Placed how many of them fit.
	Copies int64 `json:"copies"`
	Placed int64 `json:"placed"`
	// Room is how many would fit if as many were asked for. Where copies attract each
	// other or keep each other away it is not worked out beyond Copies.
	Room int64 `json:"room"`
	// Resource is the GPU resource that the numbers of free devices are of, and
	// Devices how many of it a copy takes; "" and 0 for a pod without GPUs.
	Resource string `json:"resource,omitempty"`
	Devices  int64  `json:"devicesPerCopy,omitempty"`
	// Placements says where the copies are placed, most of them first: an example, for
	// the scheduler may choose other nodes that would do.
	Placements []Placement `json:"placements"`
	// Refusals says in sum why no further copy fits.
	Refusals []Refusal `json:"refusals"`
	// Nodes says it node by node, sorted by name, of those that have such GPUs. A node
	// with GPUs of two sources is in it twice if the question is about GPUs alone.
	Nodes []Node   `json:"nodes"`
	Notes []string `json:"notes"`
}

// Placement is how many copies a node takes.
type Placement struct {
	Node   string `json:"node"`
	Copies int64  `json:"copies"`
}

// Refusal is a number of nodes that refuse a further copy for one reason.
type Refusal struct {
	Reason Reason `json:"reason"`
	// Free is how many devices are free on them together.
	Free    int64    `json:"free"`
	Message string   `json:"message"`
	Nodes   []string `json:"nodes"`
}

// Node is the answer for one node.
type Node struct {
	Node   string       `json:"node"`
	Model  string       `json:"model,omitempty"`
	Source count.Source `json:"source,omitempty"`
	// Free is how many devices are free before any copy is placed, Allocatable how many
	// healthy ones there are.
	Free        int64 `json:"free"`
	Allocatable int64 `json:"allocatable"`
	Copies      int64 `json:"copies"`
	// Reasons is why no further copy fits, the one to look at first at the front;
	// empty if one does.
	Reasons []Reason `json:"reasons"`
	Message string   `json:"message,omitempty"`
}

// Ask answers questions in order, each on what the ones before have left.
//
// The facts must be of the same cluster as the snapshot; questions about GPUs alone can
// do without them (nil). Neither is changed.
func Ask(facts *Facts, snap *count.Snapshot, questions ...Question) ([]Answer, error) {
	if !snap.NodesKnown {
		return nil, errors.New("nodes are not known, and without them nobody can say what fits: ask with permission to list nodes")
	}
	if facts == nil {
		facts = &Facts{}
	}
	c := newCluster(facts, snap)
	answers := make([]Answer, 0, len(questions))
	for _, q := range questions {
		a, err := c.ask(q)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}
