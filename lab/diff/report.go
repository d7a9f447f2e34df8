package diff

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Format is how a report is written.
type Format string

// The formats there are.
const (
	Table Format = "table"
	JSON  Format = "json"
)

// Report says what was compared and where the two sides differ.
type Report struct {
	Seed uint64 `json:"seed"`
	// Pods is how many cases were tried; of them, the scheduler charges a node
	// with GPUs for Charged.
	Pods    int `json:"pods"`
	Charged int `json:"charged"`
	// Numbers is how many numbers were compared, one for each node and resource.
	Numbers       int     `json:"numbers"`
	Mismatches    int     `json:"mismatches"`
	Workers       int     `json:"workers"`
	Seconds       float64 `json:"seconds"`
	PodsPerSecond float64 `json:"podsPerSecond"`
	// Features says how many of the pods had what can be got wrong.
	Features []Feature `json:"features"`
	// Found has the first few mismatches.
	Found []Finding `json:"found,omitempty"`
}

// Feature is a number of pods that have something in common.
type Feature struct {
	Name string `json:"name"`
	Pods int    `json:"pods"`
}

// Finding is a mismatch and the smallest pods that were found to show it.
type Finding struct {
	Mismatch
	// From says which generated pods they were.
	From []Origin      `json:"from"`
	Pods []*corev1.Pod `json:"pods"`
}

// Origin names a generated pod.
type Origin struct {
	Number  int    `json:"number"`
	SubSeed string `json:"subSeed"`
}

func (t *tally) report(o Options, took time.Duration) *Report {
	r := &Report{
		Seed: o.Seed, Pods: t.pods, Charged: t.charged, Numbers: t.numbers, Mismatches: t.mismatches,
		Workers: o.Workers, Seconds: took.Seconds(), PodsPerSecond: float64(t.pods) / max(took.Seconds(), 1e-3),
	}
	for i, n := range t.features {
		r.Features = append(r.Features, Feature{features[i].name, n})
	}
	return r
}

// find makes the cluster with a mismatch again and shrinks it.
func find(o Options, first int) Finding {
	pods := shrink(cluster(o.Seed, first, min(together, o.Pods-first)), o.Counter)
	_, mismatches := compare(pods, o.Counter)
	f := Finding{Pods: pods}
	if len(mismatches) > 0 { // a counter may have no answer that it gives twice
		f.Mismatch = mismatches[0]
	}
	for _, pod := range pods {
		var n int
		if _, err := fmt.Sscanf(pod.Name, "pod-%d", &n); err == nil {
			f.From = append(f.From, Origin{n, hex(SubSeed(o.Seed, n))})
		}
	}
	return f
}

// Write writes the report.
func (r *Report) Write(w io.Writer, format Format) error {
	if format == JSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	var b strings.Builder
	for i, f := range r.Found {
		if err := f.write(&b, i+1, r.Seed); err != nil {
			return err
		}
	}
	fmt.Fprintf(&b, "%d pods tried, %d of them charged to a node; %d numbers compared, %d mismatches\n", r.Pods, r.Charged, r.Numbers, r.Mismatches)
	fmt.Fprintf(&b, "%.0f pods/s with %d workers; seed %d\n", r.PodsPerSecond, r.Workers, r.Seed)
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *Finding) write(b *strings.Builder, n int, seed uint64) error {
	fmt.Fprintf(b, "Mismatch %d: %s on %s: the scheduler says %d, we say %d\n", n, f.Resource, f.where(), f.Scheduler, f.Ours)
	for _, from := range f.From {
		fmt.Fprintf(b, "  pod %d, sub-seed %s; whole: lab diff --seed %d --only %d\n", from.Number, from.SubSeed, seed, from.Number)
	}
	for _, pod := range f.Pods {
		text, err := podYAML(pod)
		if err != nil {
			return err
		}
		b.WriteString(text)
	}
	b.WriteString("\n")
	return nil
}

// podYAML leaves out what every container status has and nobody wrote.
func podYAML(pod *corev1.Pod) (string, error) {
	copied := pod.DeepCopy()
	copied.APIVersion, copied.Kind = "v1", "Pod"
	tree, _ := encode([]*corev1.Pod{copied}).([]any)
	for _, path := range paths(tree) {
		key, _ := path[len(path)-1].(string)
		if !slices.Contains([]string{"image", "imageID", "lastState", "ready", "restartCount", "state"}, key) {
			continue
		}
		if smaller, ok := edit(tree, path, drop); ok {
			tree, _ = smaller.([]any)
		}
	}
	text, err := yaml.Marshal(tree[0])
	return "---\n" + string(text), err
}

// Show writes one generated pod and what both sides say of it.
func Show(w io.Writer, seed uint64, n int) error {
	pod := Pod(seed, n)
	text, err := podYAML(pod)
	if err != nil {
		return err
	}
	pods := []*corev1.Pod{pod}
	nodes := nodesOf(pods)
	_, err = fmt.Fprintf(w, "# pod %d of seed %d, sub-seed %s\n# the scheduler: %s\n# ours:          %s\n%s",
		n, seed, hex(SubSeed(seed, n)), Scheduler(nodes, pods), Ours(nodes, pods), text)
	return err
}
