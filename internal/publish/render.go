package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// Annotations of the published ConfigMaps. Values are decimal numbers of devices
// unless said otherwise.
const (
	prefix = "gpu-summary/"

	// AnnotationResource names the resource that the ConfigMap counts.
	AnnotationResource = prefix + "resource"
	// AnnotationRequested is the sum of all rows.
	AnnotationRequested = prefix + "requested"
	// AnnotationAllocatable is the number of healthy devices. It is absent, like
	// free, overcommitted and orphaned, when nodes are not watched.
	AnnotationAllocatable = prefix + "allocatable"
	// AnnotationFree sums what each node could still give.
	AnnotationFree = prefix + "free"
	// AnnotationOvercommitted sums what is requested beyond allocatable.
	AnnotationOvercommitted = prefix + "overcommitted"
	// AnnotationOrphaned is requested by pods whose node does not exist.
	AnnotationOrphaned = prefix + "orphaned"
	// AnnotationPending is asked for by pods that wait for a node.
	AnnotationPending = prefix + "pending"
	// AnnotationObserved says what the numbers were computed from:
	// "pods@123 nodes@120", a resourceVersion for each store. It is never a reason
	// to write.
	AnnotationObserved = prefix + "observed"

	// AnnotationTerm is the term of the lease under which the leader has written;
	// absent without leader election.
	AnnotationTerm = prefix + "term"

	// AnnotationBase names the ConfigMap that a reader starts from: on a shard that
	// which it is a shard of, on any other the ConfigMap itself.
	AnnotationBase = prefix + "base"
	// AnnotationShard is the number of a shard, from 1.
	AnnotationShard = prefix + "shard"
	// AnnotationShards is how many shards hold the rows; absent when there are none.
	AnnotationShards = prefix + "shards"
	// AnnotationGeneration names the rows that a shard holds, and on the base those
	// of all its shards together. Equal rows have equal generations.
	AnnotationGeneration = prefix + "generation"
	// AnnotationGenerations is the generation of each shard, a JSON array in the
	// order of their numbers.
	AnnotationGenerations = prefix + "shard-generations"
)

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	manager        = "gpu-summary-controller"

	// LabelInstance tells one controller's objects from another's.
	LabelInstance = prefix + "instance"
)

// Selector selects every ConfigMap of the controller with this --name.
func Selector(name string) string {
	return labelManagedBy + "=" + manager + "," + LabelInstance + "=" + name
}

func (p *Publisher) labels() map[string]string {
	return map[string]string{labelManagedBy: manager, LabelInstance: p.Name}
}

// content is what an object should say. All of it is compared with what is there,
// but for observed, which changes with every pod in the cluster.
type content struct {
	data map[string]string
	// same says that data is the very map that is there: what was rendered equals it.
	same        bool
	labels      map[string]string
	annotations map[string]string
	observed    string // "" on shards
}

// set is a base object and, once it is too large, the shards that hold its rows.
type set struct {
	name string
	// key is where the rows go: all of them into this one, or, when it is "", each
	// into one of its own.
	key string
	// head renders what stays on the base whatever its size.
	head func(*count.Snapshot) content
	rows func(*count.Snapshot, *table)
}

// SummaryName is the ConfigMap of a further resource: a "/" may stand in none.
func SummaryName(name, resource string) string {
	return name + "." + strings.ReplaceAll(resource, "/", ".")
}

// summarySet is what is requested of one resource, a key for each node. Every name
// that a node can have, a DNS subdomain of at most 253 characters, is a valid key;
// and no pod is bound to any other, for the API server checks spec.nodeName alike.
func summarySet(name, resource string) set {
	return set{
		name: name,
		head: func(snap *count.Snapshot) content { return content{annotations: totals(snap, resource)} },
		rows: func(snap *count.Snapshot, t *table) {
			for node, requested := range snap.RequestedByNode(resource) {
				t.add(node, func(b []byte) []byte { return strconv.AppendInt(b, requested, 10) })
			}
		},
	}
}

func totals(snap *count.Snapshot, resource string) map[string]string {
	sum := snap.Of(resource)
	annotations := map[string]string{
		AnnotationResource:  resource,
		AnnotationRequested: number(sum.Requested),
		AnnotationPending:   number(sum.Pending.Devices),
	}
	if snap.NodesKnown {
		annotations[AnnotationAllocatable] = number(sum.Allocatable)
		annotations[AnnotationFree] = number(sum.Free)
		annotations[AnnotationOvercommitted] = number(sum.Overcommitted)
		annotations[AnnotationOrphaned] = number(sum.Orphaned)
	}
	return annotations
}

func number[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

const shardInfix = "-shard-"

func shardName(base string, index int) string {
	return fmt.Sprintf("%s%s%04d", base, shardInfix, index+1)
}

func shardAnnotations(base string, index int, generation string) map[string]string {
	return map[string]string{AnnotationBase: base, AnnotationShard: number(index + 1), AnnotationGeneration: generation}
}

// describe lets the base name its shards.
func describe(base *content, generations []string) {
	list, _ := json.Marshal(generations) // strings cannot fail
	base.annotations[AnnotationShards] = number(len(generations))
	base.annotations[AnnotationGenerations] = string(list)
	base.annotations[AnnotationGeneration] = digest(list)
}

// shardsOf is the number of shards that a base names, 0 for none.
func shardsOf(base *corev1.ConfigMap) int {
	if base == nil {
		return 0
	}
	n, _ := strconv.Atoi(base.Annotations[AnnotationShards]) // 0 if it is no number
	return n
}

// generation names data by what it says. Neither a "\x00" in a key nor one in a
// value is possible, so no two different maps are spelt alike.
func generation(data map[string]string) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(h, "%s\x00%s\x00", key, data[key])
	}
	return hex.EncodeToString(h.Sum(nil)[:digestBytes])
}

// digestBytes of a hash tell apart the few states of an object that follow each
// other; nobody has anything to gain from two that are alike.
const digestBytes = 8

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:digestBytes])
}
