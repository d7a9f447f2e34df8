package publish

import (
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Reasons of Events. docs/events.md is the promise that goes with them.
const (
	// EventOvercommitted and EventRecovered are about a Node.
	EventOvercommitted = "GPUsOvercommitted"
	EventRecovered     = "GPUsRecovered"

	// All others are about a ConfigMap. These two speak of nodes that get no Event
	// of their own.
	EventNodesOvercommitted = "NodesOvercommitted"
	EventNodesRecovered     = "NodesRecovered"

	// EventPublishingStarted is the first time that all is as it should be since this
	// process leads; EventPublishingRecovered each time after it was not.
	EventPublishingStarted   = "PublishingStarted"
	EventPublishingStale     = "PublishingStale"
	EventPublishingFenced    = "PublishingFenced"
	EventPublishingRecovered = "PublishingRecovered"

	EventShardsNeeded    = "ShardsNeeded"
	EventShardsNotNeeded = "ShardsNotNeeded"
)

// Actions of Events: what the controller was doing.
const (
	actionCount   = "Count"
	actionPublish = "Publish"
)

// Event is something to tell. Equal ones are folded by client-go, which keeps the
// note of the first; States never tells the same so soon.
type Event struct {
	Regarding corev1.ObjectReference
	Related   *corev1.ObjectReference
	Type      string
	Reason    string
	Action    string
	Note      string
}

// Pass is what a pass leaves behind.
type Pass struct {
	// Snapshot is what was counted, nil if the caches could not be read.
	Snapshot *count.Snapshot
	// Sets is what is published now, the ConfigMap that Events are about first.
	Sets []Set
	// Err is why not all of the snapshot is published.
	Err error
}

// Set is what is known of a base object.
type Set struct {
	Name   string
	UID    types.UID // "" if there is none yet
	Shards int       // 0 if the base holds the rows itself
}

// Sets says what is published, as far as we know. Like Publish it is for one
// goroutine at a time.
func (p *Publisher) Sets() []Set {
	sets := make([]Set, len(p.sets))
	for i, s := range p.sets {
		cm, _ := p.cache.Published(s.name)
		if o := p.objects[s.name]; o != nil && o.written != nil {
			cm = o.written
		}
		sets[i] = Set{Name: s.name, Shards: shardsOf(cm)}
		if cm != nil {
			sets[i].UID = cm.UID
		}
	}
	return sets
}

// nodeReference is what kubectl describe looks for. The kubelet, too, puts the name
// where others put the UID.
func nodeReference(name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}

func configMapReference(namespace string, s Set) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: s.Name, UID: s.UID}
}

// maxNote is what the API server takes as a note.
const maxNote = 1024

// clip shortens a text to so many bytes, and not within a character.
func clip(text string, limit int) string {
	const dots = "…"
	if len(text) <= limit {
		return text
	}
	end := limit - len(dots)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}
