package demo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/lab/load"
)

// Published is what the ConfigMap says, in GPUs.
type Published struct {
	Requested, Allocatable, Free, Pending, Overcommitted int64
	// Rows is what is requested on each node.
	Rows map[string]int64
}

// parse reads the ConfigMap. A number that is missing or is none is an error, not
// zero: a demo that shows zero for "nobody said" would lie.
func parse(cm *corev1.ConfigMap) (Published, error) {
	p := Published{Rows: make(map[string]int64, len(cm.Data))}
	for _, total := range []struct {
		annotation string
		value      *int64
	}{
		{publish.AnnotationRequested, &p.Requested},
		{publish.AnnotationAllocatable, &p.Allocatable},
		{publish.AnnotationFree, &p.Free},
		{publish.AnnotationPending, &p.Pending},
		{publish.AnnotationOvercommitted, &p.Overcommitted},
	} {
		text, ok := cm.Annotations[total.annotation]
		if !ok {
			return Published{}, fmt.Errorf("annotation %s is missing", total.annotation)
		}
		var err error
		if *total.value, err = strconv.ParseInt(text, 10, 64); err != nil {
			return Published{}, fmt.Errorf("annotation %s is %q, not a number", total.annotation, text)
		}
	}
	for node, text := range cm.Data {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Published{}, fmt.Errorf("row %s is %q, not a number", node, text)
		}
		p.Rows[node] = n
	}
	return p, nil
}

// mostDifferences keeps an error readable when all of a thousand rows differ.
const mostDifferences = 5

// compare returns nil when the published numbers equal the recount, else an error
// that names a few that do not.
func compare(got Published, want load.Totals) error {
	var differences []string
	differ := func(what string, got, want any) {
		differences = append(differences, fmt.Sprintf("%s is %v, want %v", what, got, want))
	}
	for _, total := range []struct {
		what      string
		got, want int64
	}{
		{"requested", got.Requested, want.Requested},
		{"allocatable", got.Allocatable, want.Allocatable},
		{"free", got.Free, want.Free},
		{"pending", got.Pending, want.Pending},
	} {
		if total.got != total.want {
			differ(total.what, total.got, total.want)
		}
	}
	nodes := maps.Clone(got.Rows)
	if nodes == nil {
		nodes = map[string]int64{}
	}
	maps.Copy(nodes, want.PerNode)
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		g, w := row(got.Rows, node), row(want.PerNode, node)
		if g != w {
			differ("row "+node, g, w)
		}
	}
	if len(differences) == 0 {
		return nil
	}
	more := ""
	if n := len(differences) - mostDifferences; n > 0 {
		differences, more = differences[:mostDifferences], fmt.Sprintf("; and %d more", n)
	}
	return fmt.Errorf("%s%s", strings.Join(differences, "; "), more)
}

// row tells a row that is not there from one that says zero.
func row(rows map[string]int64, node string) string {
	n, ok := rows[node]
	if !ok {
		return "absent"
	}
	return strconv.FormatInt(n, 10)
}
